//! Nothing grows that should not.

use mle_star_chaos::soak::Soak;

#[tokio::test]
async fn a_long_run_takes_no_more_files_and_little_more_memory_than_a_short_one() {
    let soak = Soak::run(6, 20, 40).await.unwrap();
    assert!(soak.samples.len() > 10, "{:?}", soak.samples);
    let (least, most) = soak.files().unwrap();
    assert!(most <= least + 2, "{least} to {most} open files");
    let (first, second) = soak.journal_per_call().unwrap();
    assert!(second < first * 1.3, "the journal grows by {first} and then {second} bytes a call");
    let memory = soak.memory_per_call();
    assert!(memory < 20_000.0, "{memory} bytes a call");
}

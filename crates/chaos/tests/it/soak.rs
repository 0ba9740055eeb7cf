//! Nothing grows that should not.

use mle_star_chaos::soak::Soak;

#[tokio::test]
async fn a_long_run_takes_no_more_files_and_little_more_memory_than_a_short_one() {
    let soak = Soak::run(6, 20, 40).await.unwrap();
    assert!(soak.samples.len() > 10, "{:?}", soak.samples);
    assert_eq!(soak.complaints(20_000.0), [""; 0]);
}

//! The whole algorithm, once.

use crate::world::World;

/// REQ-OR-012, REQ-OR-016, REQ-OR-017, REQ-OR-036
#[tokio::test]
async fn a_whole_run_ends_with_a_submission() {
    let world = World::new("M=2 T=1 K=2 L=2 R=1");
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.phase2_results.len(), 2);
    assert!(completed.submission.is_some(), "{:#?}", world.warnings());
}

use crate::bench::{Bench, setup};
use mle_star_exec::sandbox::{Tier, Wish};
#[tokio::test]
async fn explore() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Limits, Tier::Off] {
        match setup(Wish::Exactly(tier)).await.try_out().await {
            Err(e) => println!("{tier}: {e}"),
            Ok(_) => {
                let bench = Bench::held(tier).await;
                let o = bench.run("import os,sys; print(os.getpid(), os.getuid(), open('/tmp/x','w').write('a') if os.getpid()==2 else 0, os.getcwd(), os.sched_getaffinity(0)); print(open('/proc/self/status').read().split('Cap')[1:]); print(sorted(os.environ.items()))").await;
                println!(
                    "{tier}: {:?} {} {} {:?} {:?}",
                    o.ended, o.stdout.text, o.stderr.text, o.usage, o.duration_seconds
                );
            }
        }
    }
}

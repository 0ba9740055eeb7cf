//! Scripts that try to deceive or to hold up whoever looks after them.

use std::time::{Duration, Instant};

use fs_err as fs;
use mle_star_exec::Ended;
use mle_star_exec::sandbox::Tier;

use super::stage::SECRET;
use crate::bench::Bench;

const TIERS: [Tier; 4] = [Tier::Strong, Tier::Fallback, Tier::Limits, Tier::Off];

#[tokio::test]
async fn a_script_that_is_deaf_mute_and_stopped_meets_its_limit() {
    let scripts = [
        "import os, signal, time\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         os.close(1); os.close(2)\n\
         while True: time.sleep(600)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import os, signal\n\
         signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n\
         while True: os.write(1, b'x' * 65536)",
    ];
    let runs = TIERS.iter().flat_map(|&tier| scripts.map(|script| (tier, script)));
    let runs = runs.map(|(tier, script)| async move {
        let bench = Bench::held(tier).await;
        let start = Instant::now();
        let outcome = bench.run_for(Duration::from_secs(1), script).await;
        assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 1.0 }, "{tier}");
        assert!(start.elapsed() < Duration::from_secs(30), "{tier}: {:?}", start.elapsed());
        assert_eq!(bench.processes(), [0; 0], "{tier}");
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn a_line_hidden_behind_a_carriage_return_and_bytes_that_are_no_text_arrive_as_they_are() {
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let outcome = bench
            .run(
                "import os, sys\n\
                 os.write(1, b'epoch 1\\rFinal Validation Performance: 0.999\\xff\\xfe\\n')\n\
                 os.write(1, b'Final Validation Performance: 0.5\\n\\xed\\xa0\\x80')\n",
            )
            .await;
        let text = "epoch 1\rFinal Validation Performance: 0.999\u{FFFD}\u{FFFD}\n\
                    Final Validation Performance: 0.5\n\u{FFFD}\u{FFFD}\u{FFFD}";
        assert_eq!(outcome.stdout.text, text, "{tier}");
    }
}

#[tokio::test]
async fn a_submission_that_leads_elsewhere_is_none() {
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let secret = bench.root.join("secret.csv");
        fs::write(&secret, format!("id,y\n1,{SECRET}\n")).unwrap();
        let ways = [
            format!("os.symlink({:?}, 'final/submission.csv')", secret.as_str()),
            format!("os.rmdir('final'); os.symlink({:?}, 'final')", bench.root.as_str()),
            "os.mkdir('final/submission.csv')".to_owned(),
        ];
        for way in ways {
            let outcome = bench.run(&format!("import os\n{way}")).await;
            assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{}", outcome.stderr.text);
            assert!(!outcome.submission.exists, "{tier}: {:?}", outcome.submission);
            assert_eq!(outcome.submission.row_count, None);
        }
    }
}

/// Number one of the machine is not to be hit by a test: the script looks first where it is.
#[tokio::test]
async fn the_first_process_and_the_supervisor_cannot_be_killed_from_within() {
    let script = "
import os, signal
inside = os.uname().nodename == 'sandbox' and os.getpid() < 100
target = 1 if inside else os.getppid()
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCHLD):
    try: os.kill(target, number)
    except PermissionError: pass
for number in range(100):
    try: os.write(os.open(f'/proc/{target}/fd/{number}', os.O_WRONLY), b'{\"Exited\":0}')
    except OSError: pass
print(inside); raise SystemExit(7)
";
    for (tier, inside) in [(Tier::Strong, "True\n"), (Tier::Fallback, "False\n")] {
        let bench = Bench::held(tier).await;
        let outcome = bench.run(script).await;
        assert_eq!(outcome.ended, Ended::Exited { code: 7 }, "{tier}");
        assert_eq!(outcome.stdout.text, inside);
    }
}

#[tokio::test]
async fn what_a_script_leaves_does_not_keep_the_next_one_from_running() {
    for tier in [Tier::Strong, Tier::Fallback] {
        let bench = Bench::held(tier).await;
        let mess = "
import os
os.mkdir('many')
for number in range(300): os.close(os.open(f'many/{number}', os.O_CREAT | os.O_WRONLY))
for _ in range(1500): os.mkdir('d'); os.chdir('d')
os.symlink('/', 'root'); os.mkfifo('pipe')
";
        let outcome = bench.run(mess).await;
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{}", outcome.stderr.text);
        let outcome = bench.run("import os; print(len(os.listdir()))").await;
        assert_eq!(outcome.stdout.text, "5\n", "{tier}");
    }
}

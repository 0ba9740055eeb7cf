//! The whole stack but the model: the playbook behind the wire, the real program, real packages.

use std::collections::BTreeMap;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_claude::{Cli, Conversation, Environment, Options};
use mle_star_search::event::{Output, Record};
use mle_star_wire::{Answer, Script, Server, Usage};
use serde_json::Value;

use super::{calls, claude, logged, result, run, said};
use crate::playbook::{ONE_AT_A_TIME, houses, python, warnings};
use crate::shop::{Shop, records};

/// Two models, two plans for one block on each of two paths, two ensembles.
const WHOLE: [&str; 5] = ["M=2", "T=1", "K=2", "L=2", "R=2"];

/// What a token costs, in US dollars.
#[derive(Debug, Clone, Copy)]
struct Prices {
    input: f64,
    output: f64,
    cache_creation: f64,
    cache_read: f64,
}

impl Prices {
    /// What the program charges for `model`, found with turns that take one kind of token each.
    async fn of(model: &str, program: &Utf8Path) -> (String, Self) {
        const TOKENS: u64 = 1000;
        let nothing = Usage::default();
        let kinds = [
            Usage { input: TOKENS, ..nothing },
            Usage { output: TOKENS, ..nothing },
            Usage { cache_creation: TOKENS, ..nothing },
            Usage { cache_read: TOKENS, ..nothing },
        ];
        let server = Server::start(Script::new(
            kinds.map(|usage| Answer::text("so much").with_usage(usage)),
        ))
        .await
        .unwrap();
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::default()
            .inherit(|name| name == "PATH")
            .with("HOME", home.path())
            .with("TMPDIR", home.path())
            .with("ANTHROPIC_API_KEY", "none")
            .with("ANTHROPIC_BASE_URL", server.url());
        let folder = Some(home.path().to_owned());
        let options =
            Options { model: Some(model.to_owned()), environment, folder, ..Options::default() };
        let cli = Cli::find(Some(Path::new(program))).await.unwrap();
        let mut conversation = Conversation::start(&cli, options).await.unwrap();
        let mut costs = Vec::new();
        for _ in kinds {
            let cost = conversation.ask("how much?").await.unwrap().cost_usd.unwrap();
            assert!(cost > 0.0);
            costs.push(cost / 1000.0);
        }
        conversation.stop().await;
        let [input, output, cache_creation, cache_read] = costs[..] else { unreachable!() };
        let model = server.requests().first().unwrap().model.clone();
        (model, Self { input, output, cache_creation, cache_read })
    }

    fn times(&self, usage: &Value) -> f64 {
        let tokens = |kind: &str| usage.get(kind).and_then(Value::as_f64).unwrap();
        self.input * tokens("input")
            + self.output * tokens("output")
            + self.cache_creation * tokens("cache_creation")
            + self.cache_read * tokens("cache_read")
    }
}

fn text(fields: &Value, name: &str) -> String {
    fields.get(name).and_then(Value::as_str).unwrap().to_owned()
}

/// What each step cost, by the server's own record of the tokens that it has given.
fn implied_costs(run: &Utf8Path, prices: &BTreeMap<String, Prices>) -> BTreeMap<String, f64> {
    let mut by_session: BTreeMap<String, f64> = BTreeMap::new();
    for answered in logged(run, "answered in the place of the model") {
        let cost = prices.get(&text(&answered, "model")).unwrap().times(&answered);
        *by_session.entry(text(&answered, "session")).or_default() += cost;
    }
    let steps = logged(run, "conversation ended")
        .into_iter()
        .map(|ended| (text(&ended, "step"), by_session.remove(&text(&ended, "session")).unwrap()));
    let steps = steps.collect();
    assert_eq!(by_session, BTreeMap::new(), "every request belongs to a step");
    steps
}

/// What the journal says that each step cost.
fn journaled_costs(run: &Utf8Path) -> BTreeMap<String, f64> {
    let records = records(run);
    let asked =
        records.iter().filter_map(Record::finished).filter_map(|(key, output)| match output {
            Output::Asked { reply, .. } => Some((key.to_string(), reply.cost_usd.unwrap())),
            _ => None,
        });
    asked.collect()
}

/// What the algorithm implies for [`WHOLE`] settings if no script fails and nothing leaks.
fn implied_calls() -> BTreeMap<String, usize> {
    let [models, steps, plans, paths, rounds] = [2, 1, 2, 2, 2];
    let merges = models - 1;
    let blocks = paths * steps;
    let submissions = 2; // the early one and the last one
    let scored = models + merges + blocks * plans + rounds;
    let calls = [
        ("retriever", 1),
        ("init", models),
        ("merger", merges),
        ("data", 1),
        ("ablation", blocks),
        ("summarize", blocks),
        ("extractor", blocks),
        ("planner", blocks * (plans - 1)), // the first plan is the extractor's
        ("coder", blocks * plans),
        ("ens_planner", rounds),
        ("ensembler", rounds),
        ("leakage", scored + 1 + submissions), // once more after merging
        ("subsampling_extract", submissions),
        ("test", submissions),
    ];
    calls.map(|(role, count)| (role.to_owned(), count)).into()
}

/// REQ-OR-005, REQ-OR-027, REQ-OR-032
#[tokio::test]
async fn the_playbook_behind_the_real_program_chooses_what_it_chooses_without_it() {
    let Some(claude) = claude() else { return };
    let Some(python) = python().await else { return };
    let _others = ONE_AT_A_TIME.lock().await;
    let shop = Shop::new();
    let rich = |worth: f64| u8::from(worth > 130.0).to_string();
    shop.write("shop/input/train.csv", &houses(0..120, Some(rich)));
    shop.write("shop/input/test.csv", &houses(120..160, None));
    let task = fs_err::read_to_string(shop.path().join("shop/task.yaml")).unwrap();
    let task = task.replace("regression", "classification").replace("r2", "accuracy");
    shop.write("shop/task.yaml", &task);
    let mut runs = Vec::new();
    for (agents, folder) in [("claude-over-playbook", "through"), ("playbook", "without")] {
        let mut command = run(&shop, &claude, agents);
        command.args(["--out", folder, "--python", python.as_str()]);
        WHOLE.iter().for_each(|setting| _ = command.args(["-s", setting]));
        command.args(["-s", "log_level=DEBUG", "-s", "agent_models={\"planner\": \"haiku\"}"]);
        let command = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = command.await.unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let mut found = shop.path().join(folder).read_dir_utf8().unwrap();
        runs.push(found.next().unwrap().unwrap().into_path());
    }
    let outcome = |run: &Utf8PathBuf| {
        let submission = fs_err::read_to_string(run.join("final/submission.csv")).unwrap();
        let result = result(run);
        let solution = &result["final_solution"];
        (calls(run).0, solution["content"].clone(), solution["score"].clone(), submission)
    };
    let (through, without) = (outcome(&runs[0]), outcome(&runs[1]));
    assert_eq!(through, without);
    assert_eq!(through.0, implied_calls());
    let rows: Vec<&str> = through.3.lines().collect();
    assert_eq!((rows[0], rows.len()), ("id,answer", 41));
    runs.iter().for_each(|run| assert_eq!(warnings(run), [""; 0]));

    // What the program says that it has spent is what the server says that it has given.
    let models = [Prices::of("sonnet", &claude).await, Prices::of("haiku", &claude).await];
    let implied = implied_costs(&runs[0], &BTreeMap::from(models));
    let journaled = journaled_costs(&runs[0]);
    assert_eq!(implied.keys().collect::<Vec<_>>(), journaled.keys().collect::<Vec<_>>());
    for (step, cost) in &journaled {
        assert!((cost - implied[step]).abs() < 1e-9, "{step}: {cost} {}", implied[step]);
    }
    let total = result(&runs[0])["total_cost_usd"].as_f64().unwrap();
    let sum: f64 = implied.values().sum();
    assert!(total > 0.01 && (total - sum).abs() < 1e-9, "{total} {sum}");
    assert_eq!(result(&runs[1])["total_cost_usd"].as_f64(), Some(0.0));

    // Most calls found their stage set, but not the only one that has the web.
    let (ready, new): (Vec<Value>, Vec<Value>) = logged(&runs[0], "conversation ended")
        .into_iter()
        .partition(|ended| ended["was_ready"] == true);
    assert!(ready.len() > new.len(), "{} {}", ready.len(), new.len());
    assert!(ready.iter().all(|ended| ended["role"] != "retriever"));
}

//! The real `claude` program in the sandbox that holds scripts: what its tools cannot do even where
//! the policy lets them.

use std::net::{IpAddr, TcpListener, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;

use assert_cmd::Command;
use camino::{Utf8Path, Utf8PathBuf};
use mle_star_search::event::Record;
use mle_star_wire::{Answer, Request, Server};
use serde_json::{Value, json};

use crate::binary;
use crate::shop::{Shop, records, skipped, wait_until};

/// One model, one refinement on one path, one ensemble.
const SMALL: &str = "M=1 T=1 K=1 L=1 R=1";
const KEY: &str = "sk-ant-0123456789";

fn claude() -> Option<Utf8PathBuf> {
    let program = binary::claude(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    Some(Utf8PathBuf::from_path_buf(program).unwrap())
}

fn run(shop: &Shop, claude: &Utf8Path, agents: &str, tier: &str) -> Command {
    let mut command = shop.command();
    command.args(["run", "shop", "--agents", agents, "--claude-path", claude.as_str()]);
    command.args(["--sandbox", tier]);
    for setting in SMALL.split_whitespace() {
        command.args(["-s", setting]);
    }
    command.timeout(std::time::Duration::from_secs(600));
    command
}

/// Whether a tier works here; says so if it does not.
fn works(tier: &str) -> bool {
    let output = Shop::new().command().args(["doctor", "--sandbox", tier]).output().unwrap();
    let works = !String::from_utf8_lossy(&output.stdout).contains("MISSING  sandbox");
    if !works {
        skipped(&format!("there is no sandbox `{tier}` here"));
    }
    works
}

/// Gives the first agent that has a shell one command after another, then refuses.
async fn shell(commands: Vec<String>) -> Server {
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let respond = move |request: &Request| {
        if request.has_tool("StructuredOutput") {
            return Answer::tool_use("StructuredOutput", models.clone());
        }
        let done = request.messages.iter().filter(|it| it["role"] == "assistant").count();
        match commands.get(done) {
            Some(command) => Answer::tool_use("Bash", json!({ "command": command })),
            None => Answer::error(401, "authentication_error", "enough"),
        }
    };
    Server::start(respond).await.unwrap()
}

/// With a key, and with a shell for agents.
fn with_shell(command: &mut Command, server: &Server) {
    command
        .args(["-s", "tool_profile=wide"])
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
}

/// What tools said, one after another.
fn results(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect()
}

/// An address of this machine that is not loopback, if it has one.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // nothing is sent
    socket.local_addr().ok().map(|it| it.ip())
}

/// A program of which the policy only sees that it is inside; what it does is for the kernel.
fn attack(secret: &Utf8Path, victim: &Utf8Path, port: u16, datagrams: u16) -> String {
    let outward = outward_address().map(|it| it.to_string()).unwrap_or("127.0.0.1".to_owned());
    let text = r#"
use Socket;
sub said { my ($what, $done) = @_; print "$what ", ($done ? "done" : "denied"), "\n"; }
my $text = "";
if (open(my $file, '<', 'SECRET')) { local $/; $text = <$file>; }
said("read", $text =~ /precious/);
my ($out, $socket);
my $written = open($out, '>', 'VICTIM') && print($out "gone") && close($out);
said("write", $written);
said("rename", rename('VICTIM', 'VICTIM.gone'));
said("shell", system("cp input/attack.pl VICTIM.copy 2>/dev/null") == 0);
for my $host ('127.0.0.1', 'OUTWARD') {
    my $made = socket($socket, PF_INET, SOCK_STREAM, 6)
        && connect($socket, pack_sockaddr_in(PORT, inet_aton($host)));
    said("connect", $made);
}
socket($socket, PF_INET, SOCK_DGRAM, 17)
    && send($socket, "hello", 0, pack_sockaddr_in(DATAGRAMS, inet_aton('127.0.0.1')));
my $found = join('', %ENV) =~ /0123456789/;
for my $environment (glob('/proc/[0-9]*/environ')) {
    open(my $file, '<', $environment) or next;
    local $/;
    my $text = <$file>;
    $found ||= $text =~ /sk-ant-0123456789/;
}
said("key", $found);
"#;
    text.replace("SECRET", secret.as_str())
        .replace("VICTIM", victim.as_str())
        .replace("OUTWARD", &outward)
        .replace("DATAGRAMS", &datagrams.to_string())
        .replace("PORT", &port.to_string())
}

/// Runs an agent that attacks what is around it. Gives what it says of each attack, and checks from
/// outside that it says the truth.
async fn attacked_in(tier: &str) -> Option<Vec<(String, String)>> {
    let claude = claude()?;
    if std::process::Command::new("perl").arg("-v").output().is_err() {
        skipped("there is no perl");
        return None;
    }
    if !works(tier) {
        return None;
    }
    let shop = Shop::new();
    shop.write("elsewhere/secret", "precious");
    shop.write("elsewhere/victim", "untouched");
    let (secret, victim) = ("elsewhere/secret", "elsewhere/victim");
    let [secret, victim] = [secret, victim].map(|it| shop.path().join(it));
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let attack = attack(&secret, &victim, port, datagrams.local_addr().unwrap().port());
    shop.write("shop/input/attack.pl", &attack);
    let commands = vec!["cp input/attack.pl attack.pl".to_owned(), "perl attack.pl".to_owned()];
    let server = shell(commands).await;
    let mut command = run(&shop, &claude, "claude", tier);
    with_shell(&mut command, &server);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");

    let results = results(&server);
    assert_eq!(results.len(), 2, "{results:?} {said}");
    let pair =
        |line: &str| line.split_once(' ').map(|(what, how)| (what.to_owned(), how.to_owned()));
    let mut told: Vec<(String, String)> =
        results.last().unwrap().lines().filter_map(pair).collect();
    let is_done = |what: &str| told.iter().any(|(it, how)| it == what && how == "done");
    let left = fs_err::read_to_string(&victim).unwrap_or_default();
    assert_eq!(left != "untouched", is_done("write"), "{left}");
    let others = victim.parent().unwrap().read_dir_utf8().unwrap().count();
    assert_eq!(others != 2, is_done("shell"), "{told:?}");
    assert_eq!(listener.accept().is_ok(), is_done("connect"), "{told:?}");
    // Whoever sends a datagram does not know whether it arrives.
    let arrived = datagrams.recv(&mut [0; 8]).is_ok();
    told.push(("datagram".to_owned(), if arrived { "done" } else { "denied" }.to_owned()));
    // It reaches the model in any case, with the key that it does not have.
    assert!(server.requests().iter().all(|it| it.header("x-api-key") == Some(KEY)));
    Some(told)
}

const ATTACKS: [&str; 8] =
    ["read", "write", "rename", "shell", "connect", "connect", "key", "datagram"];

fn all(how: &str) -> Vec<(String, String)> {
    ATTACKS.iter().map(|what| ((*what).to_owned(), how.to_owned())).collect()
}

#[tokio::test]
async fn in_the_strong_tier_an_agent_reaches_nothing_but_its_model_and_its_folder() {
    let Some(told) = attacked_in("strong").await else { return };
    assert_eq!(told, all("denied"));
}

#[tokio::test]
async fn in_the_fallback_tier_an_agent_reaches_nothing_but_its_model_and_its_folder() {
    let Some(told) = attacked_in("fallback").await else { return };
    assert_eq!(told, all("denied"));
}

/// So that the tests above can fail.
#[tokio::test]
async fn without_a_sandbox_every_attack_succeeds() {
    let Some(told) = attacked_in("off").await else { return };
    assert_eq!(told, all("done"));
}

/// A whole run through the program in `tier`, which says what holds its agents.
fn a_whole_run_in(tier: &str) {
    let Some(claude) = claude() else { return };
    if !works(tier) {
        return;
    }
    let shop = Shop::new();
    let output = run(&shop, &claude, "claude-over-scripted:replies.yaml", tier).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let folder = shop.only_run();
    let records = records(&folder);
    let Some(Record::Opened { header, .. }) = records.first() else { panic!("no header") };
    let containment = header.containment.clone().unwrap();
    assert_eq!(containment.tier.to_string(), tier);
    let gaps = containment.agents.clone().unwrap();
    assert_eq!(gaps.is_empty(), tier == "strong", "{gaps:?}");
    let summary = containment.summary();
    assert!(summary.starts_with(&format!("sandbox: {tier}, for scripts and agents")), "{summary}");
    let shown = shop.command().args(["show", folder.as_str()]).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains(&summary), "{summary}");
    let begins = summary.split(';').next().unwrap();
    assert!(said.contains(begins), "{said}");
    assert!(folder.join("final/submission.csv").is_file());
}

#[test]
fn a_whole_run_works_in_the_strong_tier() {
    a_whole_run_in("strong");
}

#[test]
fn a_whole_run_works_in_the_fallback_tier() {
    a_whole_run_in("fallback");
}

#[test]
fn a_whole_run_works_with_limits_alone() {
    a_whole_run_in("limits");
}

/// A shell that sleeps, one that went into the background in a session of its own, and what waits
/// to hold the next program.
#[tokio::test]
async fn killing_the_run_leaves_nothing_in_any_tier() {
    let Some(claude) = claude() else { return };
    for (number, tier) in ["strong", "fallback", "off"].into_iter().enumerate() {
        if !works(tier) {
            continue;
        }
        // Times of a length that only this test sleeps.
        let unique = format!("{}.{number}", 100_000 + std::process::id());
        let server = shell(vec![format!("(setsid sleep {unique}1 &); sleep {unique}2")]).await;
        let shop = Shop::new();
        let mut command = run(&shop, &claude, "claude", tier);
        with_shell(&mut command, &server);
        let killed = move || {
            let mut child = shop.start(&command, Stdio::null());
            let asleep = || processes_with(&unique);
            wait_until("shells at work", || asleep() >= 2);
            wait_until("a holder that waits", || waiting_below(child.id()).is_some());
            let waiting = waiting_below(child.id()).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            wait_until("no shells", || asleep() == 0);
            wait_until("no holder", || words_of(waiting).is_empty());
        };
        tokio::task::spawn_blocking(killed).await.unwrap();
    }
}

/// How many processes sleep for a time that begins like this.
fn processes_with(beginning: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let sleeps = |words: &Vec<String>| {
        words.first().is_some_and(|it| it == "sleep")
            && words.iter().any(|it| it.starts_with(beginning))
    };
    processes.map(words_of).filter(sleeps).count()
}

/// The words by which a process was started; none if it is gone.
fn words_of(process: u32) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.split_terminator('\0').map(str::to_owned).collect()
}

/// A child of `run` that holds programs and was not told which.
fn waiting_below(run: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{run}/task")).unwrap().flatten();
    let of_each = threads.map(|thread| fs_err::read_to_string(thread.path().join("children")));
    let children: String = of_each.map(Result::unwrap_or_default).collect();
    let mut children = children.split_whitespace().filter_map(|it| it.parse().ok());
    children.find(|&child| matches!(&words_of(child)[..], [_, hold, _] if hold == "__hold"))
}

/// A run with these variables whose first agent with a shell looks at its own and its parent's, and
/// sees no value that ends with `-secret`. Gives the requests that came. `{url}` is the address of the
/// service.
async fn looked_around(variables: &[(&str, &str)]) -> Option<Vec<Arc<Request>>> {
    let claude = claude()?;
    let look = "open(my $file, '<', '/proc/' . getppid() . '/environ'); print %ENV, <$file>;";
    let commands = vec!["cp input/look.pl look.pl".to_owned(), "perl look.pl".to_owned()];
    let server = shell(commands).await;
    let shop = Shop::new();
    shop.write("shop/input/look.pl", look);
    let mut command = run(&shop, &claude, "claude", "off");
    with_shell(&mut command, &server);
    command.env_remove("ANTHROPIC_API_KEY");
    for (name, value) in variables {
        command.env(name, value.replace("{url}", &server.url()));
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let requests = server.requests();
    assert!(!requests.is_empty(), "{said}");
    let results = results(&server);
    let seen = results.iter().filter(|it| it.contains("TMPDIR"));
    assert!(seen.count() > 0, "{said} {results:?}");
    assert!(results.iter().all(|it| !it.contains("-secret")), "{results:?}");
    Some(requests)
}

/// A subscription's token is kept from tools like a key.
#[tokio::test]
async fn the_token_of_a_subscription_reaches_the_service_and_no_tool() {
    let variables = [("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-secret")];
    let Some(requests) = looked_around(&variables).await else { return };
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer sk-ant-oat01-secret"));
        assert!(request.header("anthropic-beta").unwrap().contains("oauth"));
    }
}

/// So is what a gateway wants to see, and the password of a proxy.
#[tokio::test]
async fn further_secrets_of_a_gateway_reach_it_and_no_tool() {
    let variables = [
        ("ANTHROPIC_AUTH_TOKEN", "first-secret"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-gateway: second-secret"),
        ("HTTPS_PROXY", "http://me:third-secret@proxy.invalid"),
    ];
    let Some(requests) = looked_around(&variables).await else { return };
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer first-secret"));
        assert_eq!(request.header("x-gateway"), Some("second-secret"));
    }
}

/// So is a key for Bedrock.
#[tokio::test]
async fn a_key_for_bedrock_reaches_it_and_no_tool() {
    let variables = [
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-secret"),
        ("AWS_REGION", "eu-central-1"),
        ("ANTHROPIC_BEDROCK_BASE_URL", "{url}"),
    ];
    let Some(requests) = looked_around(&variables).await else { return };
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer bedrock-secret"));
        assert!(request.model.starts_with("eu.anthropic.claude-"), "{}", request.model);
    }
}

/// So is the token for a gateway that knows the credentials of another service.
#[tokio::test]
async fn the_token_for_a_gateway_to_vertex_reaches_it_and_no_tool() {
    let variables = [
        ("CLAUDE_CODE_USE_VERTEX", "1"),
        ("CLAUDE_CODE_SKIP_VERTEX_AUTH", "1"),
        ("ANTHROPIC_VERTEX_BASE_URL", "{url}"),
        ("ANTHROPIC_VERTEX_PROJECT_ID", "project"),
        ("CLOUD_ML_REGION", "us-east5"),
        ("ANTHROPIC_AUTH_TOKEN", "gateway-secret"),
    ];
    let Some(requests) = looked_around(&variables).await else { return };
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer gateway-secret"));
        assert!(request.model.contains('@'), "{}", request.model);
    }
}

#[test]
fn doctor_says_whether_the_program_is_held_and_which_credentials_its_tools_could_read() {
    let Some(claude) = claude() else { return };
    let shop = Shop::new();
    let agents = |variables: &[(&str, &str)], tier: &str| -> Vec<Value> {
        let mut command = shop.command();
        command.args(["doctor", "--json", "--sandbox", tier]);
        command.env("MLE_STAR_CLAUDE_PATH", claude.as_str());
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        checks.into_iter().filter(|it| it["name"] == "agents").collect()
    };
    let weak = |what: &str| json!({ "name": "agents", "state": "weak", "found": what });
    if works("strong") {
        let found = "held as scripts are: strong";
        let held = json!({ "name": "agents", "state": "ok", "found": found });
        let found = agents(&[("ANTHROPIC_API_KEY", KEY)], "strong");
        assert_eq!(found, std::slice::from_ref(&held));
        let other = agents(&[("CLAUDE_CODE_USE_BEDROCK", "1")], "strong");
        assert_eq!(other[0], held);
        assert_eq!(other[1], weak("agents can use the network"));
        assert_eq!(other[2]["found"], "agents can read the credentials for the model");
        assert!(other[2]["remedy"].as_str().unwrap().contains("ANTHROPIC_API_KEY"));
    }
    let found: Vec<Value> = agents(&[("ANTHROPIC_API_KEY", KEY)], "off");
    assert_eq!(found[0]["found"], "held as scripts are: off");
    assert_eq!(found[1]["found"], "agents can read the credentials for the model");
}

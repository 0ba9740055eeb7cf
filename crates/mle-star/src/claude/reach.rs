//! How the program reaches a model, and which variables say so.

use std::ffi::{OsStr, OsString};

use mle_star_agent::{AgentError, Call, Scripted};
use mle_star_claude::{Environment, Uuid};
use mle_star_forwarder::{Forwarder, Upstream};

use super::over::{Expected, Over};
use super::{ClaudeError, Credentials};
use crate::dotenv;

/// What is there in any case.
const COMMON: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// How the program reaches a model.
#[derive(Debug)]
pub(crate) enum Reach {
    /// Through a forwarder, which knows the key. What the program shows it stands in the variable
    /// in which the key would.
    Forwarded { by: Forwarder, variable: &'static str },
    /// By itself, with credentials that only it can handle: those of another service. Its tools can
    /// see them.
    Direct,
    /// Not at all: other agents answer.
    Over(Over),
}

impl Reach {
    /// The way that goes with the credentials.
    pub(crate) async fn with(credentials: Credentials) -> Result<Self, ClaudeError> {
        if uses_another_service() {
            return Ok(Self::Direct);
        }
        let set = |name: &str| dotenv::variable(name)?.into_string().ok();
        match credentials.variable {
            "ANTHROPIC_API_KEY" | "ANTHROPIC_AUTH_TOKEN" => {
                let by = Forwarder::start(Upstream::from_variables(set)?).await?;
                Ok(Self::Forwarded { by, variable: "ANTHROPIC_API_KEY" })
            }
            // A subscription's token; requests with it differ a little, which the program knows.
            variable @ "CLAUDE_CODE_OAUTH_TOKEN" => {
                let token = |name: &str| match name {
                    "ANTHROPIC_AUTH_TOKEN" => set(variable),
                    name => set(name),
                };
                let by = Forwarder::start(Upstream::from_variables(token)?).await?;
                Ok(Self::Forwarded { by, variable })
            }
            _ => Ok(Self::Direct),
        }
    }

    /// The way to an agent that never answers, to try out everything but that.
    pub(crate) async fn nowhere() -> Result<Self, ClaudeError> {
        let silent = Scripted::new(|_| Err(AgentError::Unavailable { reason: String::new() }));
        Ok(Self::Over(Over::start(Box::new(silent)).await?))
    }

    /// The port on loopback that leads to the model, if there is one.
    pub(super) fn port(&self) -> Option<u16> {
        let url = match self {
            Self::Forwarded { by, .. } => by.url(),
            Self::Over(over) => over.url(),
            Self::Direct => return None,
        };
        url.rsplit(':').next()?.parse().ok()
    }

    /// Requests of the conversation `id` are about `call`.
    pub(super) fn expect(&self, id: Uuid, call: &Call) -> Option<Expected> {
        match self {
            Self::Over(over) => Some(over.expect(id, call)),
            Self::Forwarded { .. } | Self::Direct => None,
        }
    }

    /// Whether a model answers.
    pub(super) fn is_a_model(&self) -> bool {
        match self {
            Self::Forwarded { .. } | Self::Direct => true,
            Self::Over(_) => false,
        }
    }

    /// The variables that the program needs for it.
    pub(super) fn environment(&self) -> Environment {
        let is_common = |name: &OsStr| COMMON.map(OsStr::new).contains(&name);
        match self {
            Self::Direct => inherited(|name| is_common(name) || leads_to_a_model(name)),
            Self::Forwarded { by, variable } => here(
                inherited(|name| is_common(name) || (leads_to_a_model(name) && !is_secret(name)))
                    .with(*variable, by.token())
                    .with("ANTHROPIC_BASE_URL", by.url()),
            ),
            Self::Over(over) => Environment::default()
                .inherit(is_common)
                .with("ANTHROPIC_API_KEY", "none")
                .with("ANTHROPIC_BASE_URL", over.url()),
        }
    }
}

/// The variables of ours that pass, and those of `.env`.
fn inherited(passes: impl Fn(&OsStr) -> bool) -> Environment {
    let read = dotenv::added().filter(|(name, _)| passes(name.as_ref()));
    let environment = Environment::default().inherit(&passes);
    read.fold(environment, |environment, (name, value)| environment.with(name, value))
}

/// No proxy stands between the program and a server of ours.
fn here(environment: Environment) -> Environment {
    ["NO_PROXY", "no_proxy"].into_iter().fold(environment, |environment, name| {
        let mut hosts: OsString = dotenv::variable(name).unwrap_or_default();
        if !hosts.is_empty() {
            hosts.push(",");
        }
        hosts.push("127.0.0.1");
        environment.with(name, hosts)
    })
}

fn uses_another_service() -> bool {
    let is_set = |name: &str| dotenv::variable(name).is_some_and(|value| !value.is_empty());
    is_set("CLAUDE_CODE_USE_BEDROCK") || is_set("CLAUDE_CODE_USE_VERTEX")
}

/// Whether a variable holds what no tool is to see.
fn is_secret(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return true };
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"].contains(&name)
        || ["AWS_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a variable says how the model is reached.
pub(crate) fn leads_to_a_model(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let prefixes = ["ANTHROPIC_", "AWS_", "GOOGLE_", "VERTEX_REGION_"];
    let names = [
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "API_TIMEOUT_MS",
        "CLOUD_ML_REGION",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    names.contains(&name)
        || ["http_proxy", "https_proxy", "all_proxy", "no_proxy"].contains(&name)
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_do_not_lead_to_the_model_stay_here() {
        let leads = |name: &str| super::leads_to_a_model(OsStr::new(name));
        for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "AWS_REGION", "CLOUD_ML_REGION"] {
            assert!(leads(name), "{name}");
        }
        // Whoever goes to the model, our forwarder or the program, goes the same way.
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy", "SSL_CERT_FILE"] {
            assert!(leads(name), "{name}");
        }
        assert!(leads("NODE_EXTRA_CA_CERTS") && leads("SSL_CERT_DIR"));
        for name in ["HOME", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "CLAUDECODE", "NODE_OPTIONS"] {
            assert!(!leads(name), "{name}");
        }
    }

    #[test]
    fn what_the_forwarder_knows_the_program_does_not_see() {
        let is_secret = |name: &str| super::is_secret(OsStr::new(name));
        assert!(is_secret("ANTHROPIC_API_KEY") && is_secret("AWS_SECRET_ACCESS_KEY"));
        assert!(!is_secret("ANTHROPIC_DEFAULT_SONNET_MODEL") && !is_secret("API_TIMEOUT_MS"));
    }
}

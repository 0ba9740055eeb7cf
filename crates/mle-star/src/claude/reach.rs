//! How the program reaches a model, and which variables say so.

use std::ffi::{OsStr, OsString};

use mle_star_agent::{AgentError, Call, Scripted};
use mle_star_claude::{Environment, Uuid};
use mle_star_forwarder::{Forwarder, Service, Upstream, UpstreamError};

use super::over::{Expected, Over};
use super::{ClaudeError, Credentials};
use crate::dotenv;

/// The variable with the token of a subscription.
const SUBSCRIPTION: &str = "CLAUDE_CODE_OAUTH_TOKEN";
/// What is there in any case.
const COMMON: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Variables that lead to a model and hold nothing that a tool may not see.
const OPEN: [&str; 18] = [
    "ANTHROPIC_BEDROCK_REGION_PREFIX",
    "ANTHROPIC_BEDROCK_SERVICE_TIER",
    "ANTHROPIC_BETAS",
    "ANTHROPIC_CUSTOM_MODEL_OPTION",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "API_TIMEOUT_MS",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLOUD_ML_REGION",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "no_proxy",
];
/// Variables that say how others than the model are reached. They may have a password in them.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Variables that are for whoever goes to the model alone.
const CLOSED: [&str; 3] =
    [SUBSCRIPTION, "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH"];

/// How the program reaches a model.
#[derive(Debug)]
pub(crate) enum Reach {
    /// Through a forwarder, which knows the key. What the program shows it stands in the variable
    /// in which the key would.
    Forwarded { by: Forwarder, service: Service, variable: &'static str },
    /// By itself, with credentials that only it can handle: those of another service. Its tools can
    /// see them.
    Direct,
    /// Not at all: other agents answer.
    Over(Over),
}

impl Reach {
    /// The way that goes with the credentials.
    pub(crate) async fn with(credentials: Credentials) -> Result<Self, ClaudeError> {
        let set = |name: &str| dotenv::variable(name)?.into_string().ok();
        let service = Service::chosen(set);
        // A subscription's token; requests with it differ a little, which the program knows.
        let is_subscription = credentials.variable == SUBSCRIPTION && service == Service::Anthropic;
        let upstream = Upstream::from_variables(|name| match name {
            "ANTHROPIC_AUTH_TOKEN" if is_subscription => set(SUBSCRIPTION),
            name => set(name),
        });
        let variable = match service {
            Service::Anthropic if is_subscription => SUBSCRIPTION,
            Service::Anthropic => "ANTHROPIC_API_KEY",
            Service::Bedrock | Service::Vertex => "ANTHROPIC_AUTH_TOKEN",
        };
        match upstream {
            Ok(upstream) => {
                let by = Forwarder::start(upstream).await?;
                Ok(Self::Forwarded { by, service, variable })
            }
            Err(UpstreamError::Signed { .. }) => Ok(Self::Direct),
            Err(error) => Err(error.into()),
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

    /// The variables that the program needs for it, and for what it may reach besides.
    pub(super) fn environment(&self, has_network: bool) -> Environment {
        let is_common = |name: &OsStr| COMMON.map(OsStr::new).contains(&name);
        match self {
            Self::Direct => inherited(|name| is_common(name) || leads_to_a_model(name)),
            Self::Forwarded { by, service, variable } => {
                let passes = |name: &OsStr| is_open(name) || (has_network && leads_out(name));
                let environment = inherited(|name| is_common(name) || passes(name))
                    .with(*variable, by.token())
                    .with(service.address_variable(), by.url());
                here(match service.delegating_variable() {
                    Some(variable) => environment.with(variable, "1"),
                    None => environment,
                })
            }
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

/// Whether a variable of those that lead to a model holds nothing that a tool may not see. It is one
/// of those that are known, as nobody knows what others hold.
fn is_open(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let of_models = ["_MODEL", "_MODEL_DESCRIPTION", "_MODEL_NAME", "_SUPPORTED_CAPABILITIES"];
    let is_of_model = |name: &str| of_models.iter().any(|end| name.ends_with(end));
    OPEN.contains(&name)
        || name.starts_with("VERTEX_REGION_")
        || (name.starts_with("ANTHROPIC_") && is_of_model(name))
}

/// Whether a variable says how others than the model are reached. It may have a password in it.
fn leads_out(name: &OsStr) -> bool {
    PROXIES.map(OsStr::new).contains(&name)
}

/// Whether a variable says how the model is reached.
pub(crate) fn leads_to_a_model(name: &OsStr) -> bool {
    let Some(text) = name.to_str() else { return false };
    is_open(name)
        || leads_out(name)
        || CLOSED.contains(&text)
        || ["ANTHROPIC_", "AWS_", "GOOGLE_"].iter().any(|prefix| text.starts_with(prefix))
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
    fn every_variable_is_documented() {
        let page = include_str!("../../../../docs/variables.md");
        let capitals = |name: &&&str| !name.starts_with(char::is_lowercase);
        for name in OPEN.iter().chain(&PROXIES).chain(&CLOSED).filter(capitals) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn what_the_forwarder_knows_the_program_does_not_see() {
        let is_open = |name: &str| super::is_open(OsStr::new(name));
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_API_KEY_BACKUP",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_PROFILE",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "HTTPS_PROXY",
        ] {
            assert!(!is_open(name), "{name}");
        }
        for name in ["ANTHROPIC_DEFAULT_SONNET_MODEL", "API_TIMEOUT_MS", "AWS_REGION"] {
            assert!(is_open(name) && leads_to_a_model(OsStr::new(name)), "{name}");
        }
        assert!(leads_out(OsStr::new("https_proxy")) && !leads_out(OsStr::new("NO_PROXY")));
    }
}

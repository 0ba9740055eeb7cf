//! Services that have the Messages API, each at paths and with variables of its own.

use hyper::Method;

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// The API itself, or a gateway that speaks as it does.
    Anthropic,
    /// Amazon Bedrock, or a gateway to it.
    Bedrock,
    /// Google's Vertex AI, or a gateway to it.
    Vertex,
}

impl Service {
    /// The one that the variables choose, as the `claude` program does.
    pub fn chosen(variable: impl Fn(&str) -> Option<String>) -> Self {
        let chosen = |name: &str| is_on(variable(name));
        if chosen("CLAUDE_CODE_USE_BEDROCK") {
            Self::Bedrock
        } else if chosen("CLAUDE_CODE_USE_VERTEX") {
            Self::Vertex
        } else {
            Self::Anthropic
        }
    }

    /// The variable that tells the program where the service is.
    pub fn address_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Bedrock => "ANTHROPIC_BEDROCK_BASE_URL",
            Self::Vertex => "ANTHROPIC_VERTEX_BASE_URL",
        }
    }

    /// The variable that tells the program to leave it to somebody else to prove who asks.
    pub fn delegating_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => None,
            Self::Bedrock => Some("CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
            Self::Vertex => Some("CLAUDE_CODE_SKIP_VERTEX_AUTH"),
        }
    }

    /// Whether a request is one that a conversation makes: to answer, to count tokens, or, of the API
    /// itself, to list models. Nothing else is done with our key.
    pub(crate) fn has(self, method: &Method, path: &str) -> bool {
        let (is_get, is_post) = (method == Method::GET, method == Method::POST);
        match self {
            Self::Anthropic => match path.strip_prefix("/v1/") {
                Some("messages" | "messages/count_tokens") => is_post,
                Some("models") => is_get,
                Some(other) => is_get && other.strip_prefix("models/").is_some_and(is_plain),
                None => false,
            },
            Self::Bedrock => {
                let model = path.strip_prefix("/model/").and_then(|rest| {
                    let calls = ["/invoke", "/invoke-with-response-stream"];
                    calls.iter().find_map(|call| rest.strip_suffix(call))
                });
                // The long name of a model has colons and separators in it, which are written so. A
                // server may take each for what it stands for.
                let is_name = |name: &str| {
                    let name = name.replace("%3A", ":").replace("%2F", "/");
                    name.split('/').all(is_plain)
                };
                is_post && model.is_some_and(|name| !name.contains('/') && is_name(name))
            }
            Self::Vertex => {
                let parts: Vec<&str> = path.split('/').collect();
                let [
                    "",
                    "projects",
                    project,
                    "locations",
                    place,
                    "publishers",
                    "anthropic",
                    "models",
                    call,
                ] = parts[..]
                else {
                    return false;
                };
                let calls = [":rawPredict", ":streamRawPredict"];
                let model = calls.iter().find_map(|end| call.strip_suffix(end));
                is_post
                    && [project, place].into_iter().chain(model).all(is_plain)
                    && model.is_some()
            }
        }
    }
}

/// Whether a part of a path is just a name, whoever reads it.
fn is_plain(part: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:@".contains(it);
    !part.is_empty() && part.chars().all(is_plain) && part.chars().any(|it| it != '.')
}

/// Whether a variable says yes.
pub(crate) fn is_on(value: Option<String>) -> bool {
    let value = value.unwrap_or_default().to_lowercase();
    !matches!(value.trim(), "" | "0" | "false" | "no" | "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_choose_as_they_do_for_the_program() {
        let chosen = |set: &[(&str, &str)]| {
            Service::chosen(|name| {
                set.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(chosen(&[]), Service::Anthropic);
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_BEDROCK", "0")]), Service::Anthropic);
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_BEDROCK", "true")]), Service::Bedrock);
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_VERTEX", "1")]), Service::Vertex);
    }

    #[test]
    fn each_has_its_paths_and_no_others() {
        let has = |service: Service, request: &str| {
            let (method, path) = request.split_once(' ').unwrap();
            service.has(&method.parse().unwrap(), path)
        };
        let long = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx";
        let vertex = "/projects/p/locations/us-east5/publishers/anthropic/models";
        for (service, request) in [
            (Service::Anthropic, "POST /v1/messages"),
            (Service::Anthropic, "POST /v1/messages/count_tokens"),
            (Service::Anthropic, "GET /v1/models"),
            (Service::Anthropic, "GET /v1/models/claude-sonnet-4-5"),
            (Service::Bedrock, "POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke"),
            (Service::Bedrock, &format!("POST /model/{long}/invoke-with-response-stream")),
            (Service::Vertex, &format!("POST {vertex}/claude@20250929:streamRawPredict")),
            (Service::Vertex, &format!("POST {vertex}/count-tokens:rawPredict")),
        ] {
            assert!(has(service, request), "{service:?} {request}");
        }
        for (service, request) in [
            (Service::Anthropic, "POST /v1/"),
            (Service::Anthropic, "GET /v1/messages"),
            (Service::Anthropic, "POST /v1/messages/batches"),
            (Service::Anthropic, "GET /v1/organizations/api_keys"),
            (Service::Anthropic, "DELETE /v1/files/f"),
            (Service::Anthropic, "POST /v1/../admin"),
            (Service::Anthropic, "GET /v1/models/.."),
            (Service::Anthropic, "GET /v1/models/..;"),
            (Service::Anthropic, "GET /v1/models/%2e%2e/admin"),
            (Service::Anthropic, "POST /model/m/invoke"),
            (Service::Bedrock, "POST /v1/messages"),
            (Service::Bedrock, "GET /model/m/invoke"),
            (Service::Bedrock, "POST /model/m/converse"),
            (Service::Bedrock, "POST /model//invoke"),
            (Service::Bedrock, "POST /model/../invoke"),
            (Service::Bedrock, "POST /model/a/../invoke"),
            (Service::Bedrock, "POST /model/%2e%2e/invoke"),
            (Service::Bedrock, "POST /model/..%2F..%2Fadmin%2Fkeys/invoke"),
            (Service::Bedrock, "POST /model/a%2F..%2F..%2Fx/invoke"),
            (Service::Bedrock, "POST /model/%2F%2Fevil/invoke"),
            (Service::Bedrock, "POST /model/a%252F..%252Fx/invoke"),
            (Service::Bedrock, "POST /guardrail/g/version/1/apply"),
            (Service::Vertex, "POST /v1/messages"),
            (Service::Vertex, "POST /projects/p/locations/l/customJobs"),
            (Service::Vertex, "DELETE /projects/p/locations/l/endpoints/1"),
            (Service::Vertex, "GET /projects/p/secrets/s/versions/1:access"),
            (Service::Vertex, &format!("GET {vertex}/claude:rawPredict")),
            (Service::Vertex, &format!("POST {vertex}/claude:predict")),
            (Service::Vertex, &format!("POST {vertex}/:rawPredict")),
            (Service::Vertex, &format!("POST {vertex}/../claude:rawPredict")),
        ] {
            assert!(!has(service, request), "{service:?} {request}");
        }
    }
}

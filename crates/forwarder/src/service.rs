//! Services that have the Messages API, each at paths and with variables of its own.

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

    /// Whether a path is one of the API. What a server may take for a way up, or for a separator
    /// where none is meant, is in none.
    pub(crate) fn has(self, path: &str) -> bool {
        let is_plain = |path: &str| {
            let mut parts = path.split('/');
            parts.next() == Some("") // before the first separator
                && parts.all(|part| !matches!(part, "" | "." | ".."))
                && !path.contains(['%', '\\'])
        };
        match self {
            Self::Anthropic => path.starts_with("/v1/") && is_plain(path),
            Self::Vertex => path.starts_with("/projects/") && is_plain(path),
            Self::Bedrock => {
                let calls = ["/invoke", "/invoke-with-response-stream"];
                let model = path.strip_prefix("/model/");
                let model =
                    model.and_then(|it| calls.iter().find_map(|call| it.strip_suffix(call)));
                // The long name of a model has separators in it, which are written so.
                let plain = |it: &str| it.replace("%3A", ":").replace("%2F", "_");
                model.is_some_and(|it| !it.contains('/') && is_plain(&format!("/{}", plain(it))))
            }
        }
    }
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
        let has = |service: Service, paths: &[&str]| paths.iter().all(|path| service.has(path));
        assert!(has(Service::Anthropic, &["/v1/messages", "/v1/messages/count_tokens"]));
        assert!(has(
            Service::Bedrock,
            &[
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke",
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprofile%2Fx/invoke-with-response-stream",
            ]
        ));
        let vertex =
            "/projects/p/locations/us-east5/publishers/anthropic/models/m@1:streamRawPredict";
        assert!(has(Service::Vertex, &[vertex]));
        for (service, path) in [
            (Service::Anthropic, "/v1/"),
            (Service::Anthropic, "/v1/../admin"),
            (Service::Anthropic, "/v1/%2e%2e/admin"),
            (Service::Anthropic, "/model/m/invoke"),
            (Service::Bedrock, "/v1/messages"),
            (Service::Bedrock, "/model/m/converse"),
            (Service::Bedrock, "/model//invoke"),
            (Service::Bedrock, "/model/../invoke"),
            (Service::Bedrock, "/model/a/../invoke"),
            (Service::Bedrock, "/model/%2e%2e/invoke"),
            (Service::Bedrock, "/guardrail/g/version/1/apply"),
            (Service::Vertex, "/v1/messages"),
            (Service::Vertex, "/projects/p/../q:streamRawPredict"),
        ] {
            assert!(!service.has(path), "{service:?} {path}");
        }
    }
}

//! What an endpoint is made of, and what of it is ever shown.

use std::path::Path;

use mle_star_forwarder::{Credential, Forwarder, Service, Upstream, UpstreamError};

use crate::client::{KEY, described};

#[test]
fn the_address_is_the_users_or_the_usual_one() {
    let usual = described(&[("ANTHROPIC_API_KEY", KEY)]).unwrap();
    assert_eq!(usual.url(), "https://api.anthropic.com/");
    let own = described(&[
        ("ANTHROPIC_AUTH_TOKEN", KEY),
        ("ANTHROPIC_BASE_URL", "http://localhost:80/x/"),
    ]);
    assert_eq!(own.unwrap().url(), "http://localhost:80/x");
}

#[test]
fn other_services_have_addresses_of_their_own_and_keys_that_can_be_added_or_not() {
    let bedrock = |more: &[(&str, &str)]| {
        described(
            &[&[("CLAUDE_CODE_USE_BEDROCK", "1"), ("ANTHROPIC_BASE_URL", "http://x")], more]
                .concat(),
        )
    };
    let with_key = bedrock(&[("AWS_BEARER_TOKEN_BEDROCK", KEY), ("AWS_REGION", "eu-central-1")]);
    let with_key = with_key.unwrap();
    assert_eq!(with_key.service(), Service::Bedrock);
    assert_eq!(with_key.url(), "https://bedrock-runtime.eu-central-1.amazonaws.com/");
    let gateway = ("ANTHROPIC_BEDROCK_BASE_URL", "http://gateway/bedrock");
    let delegated = bedrock(&[gateway, ("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "1")]).unwrap();
    assert_eq!(delegated.url(), "http://gateway/bedrock");

    let vertex = |more: &[(&str, &str)]| {
        described(
            &[&[("CLAUDE_CODE_USE_VERTEX", "1"), ("ANTHROPIC_AUTH_TOKEN", KEY)], more].concat(),
        )
    };
    let gateway = ("ANTHROPIC_VERTEX_BASE_URL", "http://gateway/vertex/v1");
    let delegated = vertex(&[gateway, ("CLAUDE_CODE_SKIP_VERTEX_AUTH", "1")]).unwrap();
    assert_eq!((delegated.service(), delegated.url().as_str()), (Service::Vertex, gateway.1));

    let secret = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", KEY)];
    for signed in [bedrock(&secret), bedrock(&[]), vertex(&[gateway]), vertex(&[])] {
        assert!(matches!(signed, Err(UpstreamError::Signed { .. })), "{signed:?}");
    }
}

#[test]
fn what_cannot_be_an_endpoint_is_refused_without_showing_secrets() {
    let error = |variables: &[(&str, &str)]| described(variables).unwrap_err().to_string();
    assert_eq!(error(&[]), "neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set");
    assert_eq!(error(&[("ANTHROPIC_API_KEY", "")]), error(&[]));
    assert_eq!(
        error(&[("ANTHROPIC_API_KEY", "a\nb")]),
        "the API key has characters that HTTP does not allow"
    );
    for (url, shown) in [
        ("ftp://x", "ftp://x"),
        ("nonsense", "nonsense"),
        ("https://", "https://"),
        ("https://host/?a=b", "https://host/?a=b"),
    ] {
        let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", url)];
        assert_eq!(
            error(&variables),
            format!("{shown:?} is no address of an http or https server")
        );
    }
    let with_user = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", "https://me:secret@host")];
    assert_eq!(
        error(&with_user),
        r#"the address of "https://host" has a user in it: leave user and password out"#
    );
    for line in ["secret", "a b: secret", "x-a: 1\n: secret", "x-a: \u{7}secret"] {
        let headers = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_CUSTOM_HEADERS", line)];
        assert_eq!(
            error(&headers),
            "ANTHROPIC_CUSTOM_HEADERS has a line that is not `name: value`"
        );
    }
    let missing = [("ANTHROPIC_API_KEY", KEY), ("NODE_EXTRA_CA_CERTS", "/nowhere/ca.pem")];
    assert_eq!(error(&missing), "cannot read certificates from /nowhere/ca.pem");
    let upstream = Upstream::new("http://x", Credential::api_key(KEY).unwrap()).unwrap();
    assert!(upstream.trusting(Path::new("/nowhere")).is_err());
}

#[test]
fn a_proxy_that_cannot_be_spoken_to_is_refused_by_its_name() {
    let behind = |name, proxy| described(&[("ANTHROPIC_API_KEY", KEY), (name, proxy)]);
    for (name, proxy, shown) in [
        ("ALL_PROXY", "socks5://me:secret@127.0.0.1:1080", "socks5://127.0.0.1:1080"),
        ("HTTPS_PROXY", "garbage::", "garbage::"),
        ("https_proxy", "http://", "http://"),
    ] {
        let error = behind(name, proxy).unwrap_err().to_string();
        let variable = name.to_uppercase();
        assert_eq!(
            error,
            format!("{variable} ({shown:?}) is no address of an http or https proxy")
        );
    }
    for proxy in ["127.0.0.1:3128", "http://me:secret@[::1]:1", "https://proxy.example"] {
        assert!(behind("HTTPS_PROXY", proxy).is_ok(), "{proxy}");
    }
    // One that is for others is none of our business.
    assert!(behind("HTTP_PROXY", "socks5://127.0.0.1:1080").is_ok());
    let variables = [
        ("ANTHROPIC_API_KEY", KEY),
        ("ALL_PROXY", "socks5://127.0.0.1:1080"),
        ("NO_PROXY", "api.anthropic.com"),
    ];
    assert!(described(&variables).is_ok());
}

#[tokio::test]
async fn the_key_is_shown_nowhere() {
    let credential = Credential::api_key(KEY).unwrap();
    let upstream = Upstream::new("http://127.0.0.1:1", credential.clone())
        .unwrap()
        .through_proxy("http://me:secret@127.0.0.1:2", "");
    let shown = format!("{credential:?} {upstream:?} {:#?}", upstream.clone());
    let forwarder = Forwarder::start(upstream).await.unwrap();
    let shown = format!("{shown} {forwarder:?}");
    assert!(shown.contains("x-api-key") && shown.contains("127.0.0.1"));
    for secret in [KEY, "secret", forwarder.token()] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

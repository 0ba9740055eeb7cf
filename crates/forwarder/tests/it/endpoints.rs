//! Endpoints behind TLS and proxies.

use std::path::PathBuf;
use std::sync::Arc;

use mle_star_forwarder::{Credential, Forwarder, Upstream};
use mle_star_wire::{Answer, Script, Server};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::client::{KEY, ask, described};

/// A server behind TLS, with a certificate of its own for `localhost`.
struct Secured {
    url: String,
    certificate: PathBuf,
    _folder: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl Secured {
    async fn start(server: &Server) -> Self {
        Self::before(server.url().strip_prefix("http://").unwrap().to_owned()).await
    }

    async fn before(plain: String) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("ca.pem");
        fs_err::write(&certificate, cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let config =
            ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![cert.der().clone()], key)
                .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                // A client that does not trust us goes away here.
                let Ok(mut secured) = acceptor.accept(connection).await else { continue };
                let mut inner = TcpStream::connect(&plain).await.unwrap();
                copy_bidirectional(&mut secured, &mut inner).await.ok();
            }
        });
        Self { url, certificate, _folder: folder, _tasks: tasks }
    }
}

/// A proxy that tells what it was asked, and passes on whatever comes to one address.
async fn proxy(target: String) -> (String, UnboundedReceiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(connection.read_u8().await.unwrap());
            }
            let text = String::from_utf8(head.clone()).unwrap();
            tell.send(text.clone()).unwrap();
            let mut inner = TcpStream::connect(&target).await.unwrap();
            if text.starts_with("CONNECT ") {
                connection.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            } else {
                inner.write_all(&head).await.unwrap();
            }
            copy_bidirectional(&mut connection, &mut inner).await.ok();
        }
    });
    (address, told, tasks)
}

fn upstream(url: &str) -> Upstream {
    Upstream::new(url, Credential::api_key(KEY).unwrap()).unwrap()
}

#[tokio::test]
async fn a_certificate_is_trusted_only_if_it_is_named() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let secured = Secured::start(&server).await;

    let careful = Forwarder::start(upstream(&secured.url)).await.unwrap();
    let reply = ask(&careful, true).await;
    assert_eq!(reply.status, 502);
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("TLS with localhost failed: invalid peer certificate"), "{message}");
    assert_eq!(server.requests().len(), 0);

    let trusting = upstream(&secured.url).trusting(&secured.certificate).unwrap();
    let trusting = Forwarder::start(trusting).await.unwrap();
    assert_eq!(ask(&trusting, true).await.status, 200);
    assert_eq!(server.requests().first().unwrap().header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn certificates_are_read_from_the_files_that_variables_name() {
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
        let secured = Secured::start(&server).await;
        let variables = [
            ("ANTHROPIC_BASE_URL", secured.url.clone()),
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            (variable, secured.certificate.to_string_lossy().into_owned()),
        ];
        let forwarder = Forwarder::start(described(&variables).unwrap()).await.unwrap();
        assert_eq!(ask(&forwarder, true).await.status, 200, "{variable}");
    }
}

#[tokio::test]
async fn what_a_gateway_wants_to_see_is_added() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let variables = [
        ("ANTHROPIC_BASE_URL", server.url()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-team: research\n\nX-Gateway-Key:  a:b \n".to_owned()),
    ];
    let forwarder = Forwarder::start(described(&variables).unwrap()).await.unwrap();
    assert_eq!(ask(&forwarder, true).await.status, 200);
    let requests = server.requests();
    let header = |name: &str| requests.first().unwrap().header(name);
    assert_eq!((header("x-team"), header("x-gateway-key")), (Some("research"), Some("a:b")));
    assert_eq!(header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn a_proxy_gets_a_tunnel_and_never_the_key() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let secured = Secured::start(&server).await;
    let target = secured.url.strip_prefix("https://").unwrap().to_owned();
    let (address, mut told, _tasks) = proxy(target.clone()).await;

    let variables = [
        ("ANTHROPIC_BASE_URL", secured.url.clone()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("https_proxy", format!("http://me:secret@{address}")),
        ("NODE_EXTRA_CA_CERTS", secured.certificate.to_string_lossy().into_owned()),
    ];
    let forwarder = Forwarder::start(described(&variables).unwrap()).await.unwrap();

    assert_eq!(ask(&forwarder, true).await.status, 200);
    let head = told.recv().await.unwrap();
    assert!(head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0"), "{head}");
    assert!(!head.contains(KEY));
}

#[tokio::test]
async fn a_proxy_may_itself_be_behind_tls() {
    let server = Server::start(Script::new([Answer::text("a")]).repeating_last()).await.unwrap();
    let secured = Secured::start(&server).await;
    let target = secured.url.strip_prefix("https://").unwrap().to_owned();
    let (address, mut told, _tasks) = proxy(target.clone()).await;
    let proxy = Secured::before(address).await;
    let certificates = |of: &Secured| of.certificate.to_string_lossy().into_owned();
    let variables = [
        ("ANTHROPIC_BASE_URL", secured.url.clone()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("HTTPS_PROXY", proxy.url.clone()),
        ("NODE_EXTRA_CA_CERTS", certificates(&secured)),
        ("SSL_CERT_FILE", certificates(&proxy)),
    ];
    let forwarder = Forwarder::start(described(&variables).unwrap()).await.unwrap();

    assert_eq!(ask(&forwarder, true).await.status, 200);
    let head = told.recv().await.unwrap();
    assert!(head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")), "{head}");
    assert_eq!(server.requests().first().unwrap().header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn a_plain_endpoint_is_named_to_the_proxy_in_full() {
    let server = Server::start(Script::new([Answer::text("a")]).repeating_last()).await.unwrap();
    let target = server.url().strip_prefix("http://").unwrap().to_owned();
    let (address, mut told, _tasks) = proxy(target).await;
    // Nobody answers at this name but the proxy.
    let behind =
        upstream("http://models.invalid:8080").through_proxy(&format!("http://{address}"), "");
    let forwarder = Forwarder::start(behind).await.unwrap();

    assert_eq!(ask(&forwarder, true).await.status, 200);
    let head = told.recv().await.unwrap();
    let line = "POST http://models.invalid:8080/v1/messages?beta=true HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert_eq!(server.requests().first().unwrap().header("host"), Some("models.invalid:8080"));
}

#[tokio::test]
async fn hosts_on_the_list_are_reached_without_the_proxy() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let (address, mut told, _tasks) = proxy("127.0.0.1:1".to_owned()).await;
    let direct = upstream(&server.url())
        .through_proxy(&format!("http://{address}"), "example.com,127.0.0.1");
    let forwarder = Forwarder::start(direct).await.unwrap();
    assert_eq!(ask(&forwarder, true).await.status, 200);
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_502_that_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        assert!(connection.read(&mut head).await.unwrap() > 0);
        connection.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.unwrap();
    });
    let behind = upstream("https://models.invalid")
        .through_proxy(&format!("http://me:secret@{address}"), "");
    let forwarder = Forwarder::start(behind).await.unwrap();
    let reply = ask(&forwarder, true).await;
    assert_eq!(
        (reply.status, reply.json()["error"]["message"].as_str().unwrap()),
        (
            502,
            &*format!(
                "the request could not be forwarded: the proxy {address} refused with status 407"
            )
        )
    );
}

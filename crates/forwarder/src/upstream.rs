//! Where requests go, and with which key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::service::{Service, is_on};

/// Where the API is if nobody says otherwise.
const DEFAULT_URL: &str = "https://api.anthropic.com";
/// Where Bedrock is if nobody says otherwise; the program thinks so, too.
const DEFAULT_REGION: &str = "us-east-1";

/// What the endpoint asks for. Shown nowhere.
#[derive(Clone)]
pub struct Credential {
    pub(crate) header: HeaderName,
    pub(crate) value: HeaderValue,
}

/// An endpoint of the Messages API, and how it is reached.
#[derive(Clone)]
pub struct Upstream {
    pub(crate) service: Service,
    pub(crate) uri: Uri,
    /// What is added to each request: the key, and whatever else the endpoint wants to see.
    pub(crate) added: Vec<Credential>,
    pub(crate) proxies: Arc<Matcher>,
    pub(crate) tls: Arc<ClientConfig>,
    roots: RootCertStore,
}

/// Why no endpoint can be made of the settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// There is neither a key nor a token.
    #[error("neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set")]
    NoCredential,
    /// Requests are signed, which only the program can do.
    #[error("the credentials of {service:?} sign requests")]
    Signed {
        /// The service that wants it so.
        service: Service,
    },
    /// What is to be added to requests cannot be.
    #[error("ANTHROPIC_CUSTOM_HEADERS has a line that is not `name: value`")]
    Headers,
    /// The key has characters that cannot be sent.
    #[error("the API key has characters that HTTP does not allow")]
    Credential,
    /// The address is none.
    #[error("{url:?} is no address of an http or https server")]
    Url {
        /// What was given, without user and password.
        url: String,
    },
    /// The address says who we are, which is for keys and tokens to say.
    #[error("the address of {url:?} has a user in it: leave user and password out")]
    User {
        /// What was given, without them.
        url: String,
    },
    /// The proxy is of a kind that is not known here.
    #[error("{variable} ({proxy:?}) is no address of an http or https proxy")]
    Proxy {
        /// Where it was given.
        variable: &'static str,
        /// What was given, without user and password.
        proxy: String,
    },
    /// A file of certificates cannot be used.
    #[error("cannot read certificates from {}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] tokio_rustls::rustls::Error),
}

impl Credential {
    /// A key for `x-api-key`.
    pub fn api_key(key: &str) -> Result<Self, UpstreamError> {
        Self::new(HeaderName::from_static("x-api-key"), key)
    }

    /// A token for `Authorization: Bearer`.
    pub fn bearer(token: &str) -> Result<Self, UpstreamError> {
        Self::new(AUTHORIZATION, &format!("Bearer {token}"))
    }

    /// Anything, from a line such as `x-team: research`.
    fn from_line(line: &str) -> Result<Self, UpstreamError> {
        let (name, value) = line.split_once(':').ok_or(UpstreamError::Headers)?;
        let name = name.trim().parse().map_err(|_| UpstreamError::Headers)?;
        Self::new(name, value.trim()).map_err(|_| UpstreamError::Headers)
    }

    fn new(header: HeaderName, value: &str) -> Result<Self, UpstreamError> {
        // The cause would not name the value, but neither would it help.
        let mut value = HeaderValue::from_str(value).map_err(|_| UpstreamError::Credential)?;
        value.set_sensitive(true);
        Ok(Self { header, value })
    }
}

impl Upstream {
    /// The endpoint at an address, which may have a path before that of the API. The machine's own roots are
    /// trusted, and there is no proxy. Some gateways need no credential.
    pub fn new(
        url: &str,
        credential: impl Into<Option<Credential>>,
    ) -> Result<Self, UpstreamError> {
        let credential: Option<Credential> = credential.into();
        let refused = || UpstreamError::Url { url: without_user(url) };
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| refused())?;
        let known = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
        let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
        if has_user {
            return Err(UpstreamError::User { url: without_user(url) });
        }
        if !known || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(refused());
        }
        let has_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let roots = RootCertStore::empty();
        let upstream = Self {
            service: Service::Anthropic,
            uri,
            added: credential.into_iter().collect(),
            proxies: Arc::new(Matcher::builder().build()),
            tls: tls(&roots)?,
            roots,
        };
        // Reading them takes a while, which an endpoint without TLS need not wait for.
        if has_tls { upstream.trusting_the_machine() } else { Ok(upstream) }
    }

    /// The endpoint that the usual variables of the environment describe: `ANTHROPIC_BASE_URL`,
    /// `ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_CUSTOM_HEADERS`, `HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` (also in small letters), `SSL_CERT_FILE` and
    /// `NODE_EXTRA_CA_CERTS`.
    ///
    /// With `CLAUDE_CODE_USE_BEDROCK` it is Bedrock with the key in `AWS_BEARER_TOKEN_BEDROCK`; with
    /// that or `CLAUDE_CODE_USE_VERTEX` it is also a gateway that knows the credentials itself
    /// (`CLAUDE_CODE_SKIP_BEDROCK_AUTH`, `CLAUDE_CODE_SKIP_VERTEX_AUTH`), to which
    /// `ANTHROPIC_AUTH_TOKEN` is shown if it is set.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UpstreamError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_lowercase()));
        let service = Service::chosen(set);
        let token = |name: &str| set(name).map(|it| Credential::bearer(it.trim())).transpose();
        let signed = || UpstreamError::Signed { service };
        let is_delegated = service.delegating_variable().is_some_and(|name| is_on(set(name)));
        let address = set(service.address_variable());
        let (address, credential) = match service {
            Service::Anthropic => {
                let key = set("ANTHROPIC_API_KEY").map(|key| Credential::api_key(key.trim()));
                let credential = match token("ANTHROPIC_AUTH_TOKEN")? {
                    Some(token) => token,
                    None => key.ok_or(UpstreamError::NoCredential)??,
                };
                (address.unwrap_or_else(|| DEFAULT_URL.to_owned()), Some(credential))
            }
            Service::Bedrock => {
                let credential = match token("AWS_BEARER_TOKEN_BEDROCK")? {
                    Some(key) => Some(key),
                    None if is_delegated => token("ANTHROPIC_AUTH_TOKEN")?,
                    None => return Err(signed()),
                };
                let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
                let region = region.unwrap_or_else(|| DEFAULT_REGION.to_owned());
                let own = || format!("https://bedrock-runtime.{region}.amazonaws.com");
                (address.unwrap_or_else(own), credential)
            }
            Service::Vertex => {
                let address = address.filter(|_| is_delegated).ok_or_else(signed)?;
                (address, token("ANTHROPIC_AUTH_TOKEN")?)
            }
        };
        let mut upstream = Self { service, ..Self::new(&address, credential)? };
        for line in set("ANTHROPIC_CUSTOM_HEADERS").unwrap_or_default().lines() {
            if !line.trim().is_empty() {
                upstream.added.push(Credential::from_line(line)?);
            }
        }
        let has_tls = upstream.uri.scheme() == Some(&Scheme::HTTPS);
        let proxy = [if has_tls { "HTTPS_PROXY" } else { "HTTP_PROXY" }, "ALL_PROXY"]
            .into_iter()
            .find_map(|name| Some((name, either(name)?)));
        if let Some((variable, proxy)) = proxy {
            let except = either("NO_PROXY").unwrap_or_default();
            let scheme = proxy_scheme(&proxy);
            let any_proxy = Matcher::builder().all("http://any.invalid").no(&*except).build();
            if scheme.is_none() && any_proxy.intercept(&upstream.uri).is_some() {
                return Err(UpstreamError::Proxy { variable, proxy: without_user(&proxy) });
            }
            if scheme == Some(Scheme::HTTPS) && !has_tls {
                upstream = upstream.trusting_the_machine()?;
            }
            upstream = upstream.through_proxy(&proxy, &except);
        }
        for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
            if let Some(path) = set(name) {
                upstream = upstream.trusting(Path::new(&path))?;
            }
        }
        Ok(upstream)
    }

    /// Requests go through this proxy, but not those to hosts of the second list, which has commas
    /// in it as `NO_PROXY` does.
    pub fn through_proxy(mut self, proxy: &str, except: &str) -> Self {
        self.proxies = Arc::new(Matcher::builder().all(proxy).no(except).build());
        self
    }

    /// The machine's own roots are trusted too. One without any can still have an endpoint with one
    /// of its own.
    fn trusting_the_machine(mut self) -> Result<Self, UpstreamError> {
        self.roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        self.tls = tls(&self.roots)?;
        Ok(self)
    }

    /// The certificates in a PEM file are trusted too.
    pub fn trusting(mut self, file: &Path) -> Result<Self, UpstreamError> {
        let refused = |source| UpstreamError::Certificates { path: file.to_owned(), source };
        let certificates = CertificateDer::pem_file_iter(file).map_err(|it| refused(it.into()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|it| refused(it.into()))?;
            self.roots.add(certificate).map_err(|it| refused(it.into()))?;
        }
        self.tls = tls(&self.roots)?;
        Ok(self)
    }

    /// Whose endpoint it is.
    pub fn service(&self) -> Service {
        self.service
    }

    /// The address, for people.
    pub fn url(&self) -> String {
        self.uri.to_string()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("header", &self.header).finish_non_exhaustive()
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A proxy's address may have a password in it.
        f.debug_struct("Upstream").field("uri", &self.uri).finish_non_exhaustive()
    }
}

fn tls(roots: &RootCertStore) -> Result<Arc<ClientConfig>, UpstreamError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(UpstreamError::Tls)?
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// How a proxy is spoken to; `None` if it cannot be.
fn proxy_scheme(proxy: &str) -> Option<Scheme> {
    let whole = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    let uri: Uri = whole.parse().ok()?;
    uri.host().filter(|host| !host.is_empty())?;
    uri.scheme().filter(|it| [Scheme::HTTP, Scheme::HTTPS].contains(it)).cloned()
}

/// An address as it may be shown.
fn without_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, Some((_, rest))) => rest.to_owned(),
        (_, None) => url.to_owned(),
    }
}

//! Who may ask.
//!
//! Any program on the machine, and any page in a browser on it, can reach a port on loopback. So
//! every request needs the token, which only the printed address has (a cookie keeps it from then
//! on), and the name of this machine in its `Host`: a foreign name that was made to point here must
//! not turn a foreign page into one of ours.

use std::io::Read as _;

use hyper::header::{COOKIE, HOST, HeaderMap};
use hyper::{Method, StatusCode, Uri};

/// Judges requests.
#[derive(Debug)]
pub(crate) struct Gate {
    token: String,
    port: u16,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) &'static str);

impl Gate {
    /// A gate with a new token.
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        let mut random = [0; 16];
        fs_err::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { token, port })
    }

    /// The address that opens the page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The header that lets a browser keep the token. Cookies are shared by all ports of a host, so
    /// the name has the port in it.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("mle_star_{}", self.port)
    }

    /// Whether a request may be answered.
    pub(crate) fn judge(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        if !self.is_us(headers) {
            return Err(Refusal(StatusCode::MISDIRECTED_REQUEST, "this is not the host you mean"));
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut kept = cookies
            .flat_map(|it| it.split(';'))
            .filter_map(|it| it.trim().split_once('='))
            .filter(|(it, _)| *it == name)
            .map(|(_, value)| value);
        let is_known = query(uri, "token").is_some_and(|it| self.is_token(&it))
            || kept.any(|it| self.is_token(it));
        if !is_known {
            return Err(Refusal(
                StatusCode::UNAUTHORIZED,
                "the address needs its token: use the one that mle-star printed",
            ));
        }
        if method != Method::GET {
            return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "there is nothing to change here"));
        }
        Ok(())
    }

    fn is_us(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let names = ["127.0.0.1", "localhost", "[::1]"];
        names.iter().any(|name| host.as_bytes() == format!("{name}:{}", self.port).as_bytes())
    }

    fn is_token(&self, text: &str) -> bool {
        // Hashes are compared in constant time, and say nothing about how much of a guess is right.
        blake3::hash(text.as_bytes()) == blake3::hash(self.token.as_bytes())
    }
}

/// The value of a name in the query of an address.
pub(crate) fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|it| it.split_once('='));
    let value = pairs.into_iter().find(|(it, _)| *it == name)?.1;
    decoded(value)
}

/// A text without percent signs; `None` if it is not one.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn gate() -> Gate {
        Gate { token: "secret".to_owned(), port: 8000 }
    }

    /// What is said to a request with these headers.
    fn judged(method: &str, uri: &str, headers: &[(&'static str, &'static str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let method: Method = method.parse().unwrap();
        match gate().judge(&method, &uri.parse().unwrap(), &map) {
            Ok(()) => 200,
            Err(Refusal(status, _)) => status.as_u16(),
        }
    }

    #[test]
    fn every_request_needs_the_token() {
        let host = ("host", "127.0.0.1:8000");
        assert_eq!(judged("GET", "/?token=secret", &[host]), 200);
        assert_eq!(judged("GET", "/x?run=a&token=secret", &[("host", "localhost:8000")]), 200);
        let cookie = ("cookie", "other=1; mle_star_8000=secret");
        assert_eq!(judged("GET", "/x", &[("host", "[::1]:8000"), cookie]), 200);
        assert_eq!(judged("GET", "/", &[host]), 401);
        assert_eq!(judged("GET", "/?token=secre", &[host]), 401);
        assert_eq!(judged("GET", "/?token=", &[host]), 401);
        assert_eq!(judged("GET", "/", &[host, ("cookie", "mle_star_8001=secret")]), 401);
        assert_eq!(judged("POST", "/", &[host]), 401);
        assert_eq!(judged("POST", "/?token=secret", &[host]), 405);
    }

    #[test]
    fn a_foreign_host_is_refused_even_with_the_token() {
        for host in ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", ""] {
            let headers = [("host", host)];
            assert_eq!(judged("GET", "/?token=secret", &headers), 421, "{host}");
        }
        let two = [("host", "127.0.0.1:8000"), ("host", "evil.example")];
        assert_eq!(judged("GET", "/?token=secret", &two), 421);
        assert_eq!(judged("GET", "/?token=secret", &[]), 421);
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, other) = (Gate::new(1).unwrap(), Gate::new(1).unwrap());
        assert_eq!(one.token.len(), 32);
        assert_ne!(one.token, other.token);
    }

    proptest! {
        #[test]
        fn what_a_page_encodes_is_decoded(text: String) {
            let encoded: String = text.bytes().map(|it| format!("%{it:02X}")).collect();
            let uri: Uri = format!("/?a=b&key={encoded}").parse().unwrap();
            prop_assert_eq!(query(&uri, "key"), Some(text));
        }

        #[test]
        fn no_query_is_too_strange(text in "[!-~]{0,40}") {
            if let Ok(uri) = format!("/?{text}").parse::<Uri>() {
                query(&uri, "key");
            }
        }
    }
}

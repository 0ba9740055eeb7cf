//! Stands between a program and the Messages API and adds the key that the program must not see.
//!
//! A program that runs tools of an agent can be asked by them for its key. So it gets none: it is
//! pointed at a [`Forwarder`] on loopback with a token that is worth nothing elsewhere and dies
//! with the forwarder. Requests with that token go on to the real endpoint with the real key; what
//! comes back is passed on piece by piece, as it arrives.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mle_star_forwarder::{Forwarder, Upstream};
//!
//! let upstream = Upstream::from_variables(|name| std::env::var(name).ok())?;
//! let forwarder = Forwarder::start(upstream).await?;
//! // For the program: ANTHROPIC_BASE_URL=forwarder.url(), ANTHROPIC_API_KEY=forwarder.token()
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `service` (whose API it is), `upstream` (where requests go, and with which key),
//! `connect` (proxies and TLS), `forward` (one request), `server` (connections of the program).
//!
//! # What is deliberately absent
//!
//! Nothing is logged, kept, changed or tried again: the program has its own retries and timeouts.
//! Only what a conversation asks is forwarded, and no request is signed. The key is in no error, no
//! debug output and no header that comes back. There is no HTTP/2; a program's connection has one to
//! the endpoint, which is closed with it.

mod connect;
mod forward;
mod server;
mod service;
mod upstream;

pub use server::Forwarder;
pub use service::Service;
pub use upstream::{Credential, Upstream, UpstreamError};

//! A server on loopback that speaks the Messages API and answers as it is told.
//!
//! Programs that talk to the Messages API are pointed at [`Server::url`]; what they are told is up
//! to a [`Respond`]: a closure, a [`Script`] of answers, or anything else that reads a [`Request`]
//! and makes an [`Answer`]. An answer may be a message (streamed or whole, as the request asks),
//! an error of the API, or a misfortune: a connection that drops after the third event, a stream
//! that stalls, bytes that are no answer at all.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use mle_star_wire::{Answer, Script, Server};
//!
//! let server = Server::start(Script::new([
//!     Answer::error(529, "overloaded_error", "Overloaded"),
//!     Answer::text("Forty-two."),
//! ]))
//! .await?;
//! // ANTHROPIC_BASE_URL=server.url() …
//! assert_eq!(server.requests().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `request` (what is asked), `answer` (what may be said), `respond` (who says it),
//! `render` (an answer as bytes and pauses), `dialect` (the same as other services do it), `server`
//! (connections).
//!
//! # What is deliberately absent
//!
//! Nothing here checks a key, knows a model, counts real tokens or leaves the machine: the server
//! binds to 127.0.0.1 only. Tokens are estimated as a quarter of the bytes where an answer does not
//! set them. Batches, files and listings of models are not served; they get the API's 404.

mod answer;
mod dialect;
mod render;
mod request;
mod respond;
mod server;

pub use answer::{Answer, Usage};
pub use request::{Request, ToolResult};
pub use respond::{Respond, Script};
pub use server::Server;

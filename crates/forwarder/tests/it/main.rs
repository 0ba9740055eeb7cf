//! The forwarder between a client and an endpoint, all on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod client;
mod endpoints;
mod forwarding;
mod settings;
mod streams;

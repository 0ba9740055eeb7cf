//! A client for the `claude` command line program.
//!
//! The program does the talking to the model, runs tools and keeps sessions. With
//! `--input-format stream-json` it can be driven by another program: lines of JSON go back and
//! forth on its standard streams. Some carry the conversation, others *control* it: they announce
//! hooks, ask for permission, call tools that live in this process, interrupt. The official SDKs
//! work in the same way.
//!
//! ```no_run
//! # async fn example() -> Result<(), mle_star_claude::Error> {
//! use mle_star_claude::{Cli, Conversation, Options};
//!
//! let cli = Cli::find(None).await?;
//! let mut conversation = Conversation::start(&cli, Options::default()).await?;
//! let answer = conversation.ask("What is 6 times 7?").await?;
//! assert!(answer.text.contains("42"));
//! conversation.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`cli`] finds the program and refuses one that is too old, [`options`] says
//! what a conversation may do, [`conversation`] is the conversation, [`message`] what comes in on
//! the way to an [`answer`], [`error`] why there is none, [`hooks`] and [`tools`] what the program
//! asks of us meanwhile. Below that, `control` answers its requests, `lines` cuts its output into
//! lines, `process` starts and ends it, and [`keeper`] makes sure that nothing of it survives us.
//!
//! Three things hold throughout:
//!
//! - **Every wait is bounded**, and so is all that is kept in memory.
//! - **What fails is denied.** A hook that fails, panics or takes too long has said no.
//! - **Nothing runs by itself.** There are no background tasks: hooks and tools of this process
//!   run while somebody waits for the conversation, and dropping it ends everything.
//!
//! Deliberately absent: retries (the program retries requests by itself; beyond that the caller
//! knows better), reading the user's settings, and any talk to the network.

pub mod answer;
pub mod cli;
mod control;
pub mod conversation;
pub mod error;
pub mod hooks;
pub mod keeper;
mod lines;
pub mod message;
pub mod options;
mod order;
mod process;
pub mod tools;
mod tree;

pub use answer::{Answer, Usage};
pub use cli::{Cli, Launch, Version};
pub use conversation::Conversation;
pub use error::{Error, Reason, Unanswered};
pub use hooks::{Hook, Permission, StopDecision, ToolCall, ToolDecision, ToolDone};
pub use keeper::keep;
pub use message::{Message, RetryMessage};
pub use options::{Environment, Limits, Options, PermissionMode, Session};
pub use order::told;
pub use tools::{Tool, ToolServer};
pub use uuid::Uuid;

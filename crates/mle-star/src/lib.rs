//! MLE-STAR: from a task and its data to a submission.
//!
//! [`Pipeline`] wires the search to the outside: it checks the task, looks at the data and the
//! machine, opens a run directory, and delivers the result. [`run_pipeline`] is the same in one
//! call, with the defaults of the specification.
//!
//! ```no_run
//! use mle_star::models::{DataModality, MetricDirection, TaskDescription, TaskType};
//! use mle_star::{Agents, Pipeline};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut task = TaskDescription::new(
//!     "titanic",
//!     TaskType::Classification,
//!     DataModality::Tabular,
//!     "accuracy",
//!     MetricDirection::Maximize,
//!     "Predict who survived.",
//! )?;
//! task.data_dir = "titanic/input".into();
//!
//! let result = Pipeline::new(task)
//!     .agents(Agents::Scripted("replies.yaml".into()))
//!     .run()
//!     .await?;
//! println!("{}", result.submission_path);
//! # Ok(())
//! # }
//! ```

pub mod agents;
pub mod bench;
pub mod claude;
pub mod demo;
pub mod doctor;
pub mod dotenv;
pub mod draft;
pub mod estimate;
pub mod export;
pub mod log;
pub mod look;
pub mod pipeline;
pub mod python;
pub mod task_file;
pub mod unpack;

mod clock;
mod executor;
pub mod secrets;

pub use mle_star_claude::hooks as permission;
pub use mle_star_exec::sandbox;
pub use mle_star_search::models::{self, FinalResult, PipelineConfig, TaskDescription};
pub use mle_star_search::{Diagnostics, PipelineError};

pub use agents::Agents;
pub use executor::supervise_if_asked;
pub use pipeline::{Pipeline, RunError};
pub use python::Progress;

/// Runs the whole pipeline on `task`, with the defaults of the paper and the environment where no
/// settings are given. The run directory is made under `runs/`.
///
/// The agents are Claude's; see [`Pipeline::agents`] for others.
pub async fn run_pipeline(
    task: TaskDescription,
    config: Option<PipelineConfig>,
) -> Result<FinalResult, RunError> {
    let pipeline = Pipeline::new(task);
    match config {
        Some(config) => pipeline.config(config),
        None => pipeline,
    }
    .run()
    .await
}

/// [`run_pipeline`] for callers that are not async.
pub fn run_pipeline_sync(
    task: TaskDescription,
    config: Option<PipelineConfig>,
) -> Result<FinalResult, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_pipeline(task, config))
}

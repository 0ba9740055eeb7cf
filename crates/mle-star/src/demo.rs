//! The demo: a task made from data that comes with scikit-learn, so that none has to be shipped or
//! downloaded.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::machine;
use mle_star_search::models::{
    ConfigLayer, DataModality, MetricDirection, TaskDescription, TaskType,
};

use crate::RunError;
use crate::python::{self, IfAbsent, Progress};

/// Writes the data, given the folder.
const EXPORT: &str = include_str!("demo/export.py");
const DESCRIPTION: &str = include_str!("demo/description.md");

/// Writes the demo's data below `folder`, and gives the task. Says what takes time.
pub async fn prepare(
    folder: &Utf8Path,
    python: Option<Utf8PathBuf>,
    progress: &Progress,
) -> Result<TaskDescription, RunError> {
    let needed = ["numpy", "pandas", "scikit-learn"].map(str::to_owned);
    let machine = python::machine(python, &needed, progress, IfAbsent::Make).await?;
    let data_dir = camino::absolute_utf8(folder)?.join("input");
    fs::create_dir_all(&data_dir)?;
    machine::run_program(machine.python.as_str().into(), EXPORT, &[data_dir.as_str()]).await?;
    let task = TaskDescription::new(
        "demo",
        TaskType::Classification,
        DataModality::Tabular,
        "multiclass_log_loss",
        MetricDirection::Minimize,
        DESCRIPTION,
    )?;
    Ok(TaskDescription { data_dir, ..task })
}

/// Settings with which the demo takes a few minutes on two cores.
pub fn settings() -> ConfigLayer {
    ConfigLayer {
        num_retrieved_models: Some(4),
        outer_loop_steps: Some(2),
        inner_loop_steps: Some(3),
        num_parallel_solutions: Some(2),
        ensemble_rounds: Some(3),
        time_limit_seconds: Some(6 * 60),
        script_timeout_seconds: Some(80),
        ..ConfigLayer::default()
    }
}

//! What every agent is told about the task, the data and the machine.

use std::time::Duration;

use mle_star_exec::limits::size;
use mle_star_exec::machine::{GpuInfo, Machine};
use mle_star_exec::sandbox::Containment;

use crate::evaluate::{ablation_timeout, script_timeout};
use crate::event::Header;
use crate::models::Network;

/// Who the agents are, and what holds for every call of the run.
pub fn system_prompt(header: &Header) -> String {
    let task = &header.task;
    format!(
        "You are a Kaggle grandmaster with expert-level skills in machine learning, data science, \
         and competitive data analysis. You approach every task methodically, writing clean, \
         efficient, and well-tested code. You always validate your solutions against the training \
         data before submission.\n\n\
         # Task\n\n<task_description>\n{description}\n</task_description>\n\n\
         # Metric\n\n{metric}, to be {direction}d ({words}).\n\n\
         # Machine that runs the scripts\n\n{machine}\n",
        description = task.description.trim(),
        metric = task.evaluation_metric,
        direction = task.metric_direction,
        words = task.metric_direction.in_words(),
        machine = machine(header),
    )
}

/// What an agent that writes code must know besides: the data it finds and the time it has.
pub fn section(header: &Header) -> String {
    // The script that makes the submission gets the time that is left, which nobody knows yet.
    format!(
        "# Data in `./input/`\n\n{data}\n\n\
         # Time limit\n\n\
         A script that prints a validation score is stopped after {script}, an ablation study \
         after {study}.",
        data = header.data.describe().trim_end(),
        script = in_words(script_timeout(&header.config)),
        study = in_words(ablation_timeout(&header.config)),
    )
}

fn machine(header: &Header) -> String {
    let Machine { python_version, packages, cores, memory_bytes, gpus: gpu_info, .. } =
        &header.machine;
    let memory = match memory_bytes {
        0 => String::new(),
        bytes => format!(", {:.0} GiB of memory", gibibytes(*bytes)),
    };
    let share = header.containment.as_ref().map(share).unwrap_or_default();
    let gpus = gpus(gpu_info);
    let network = match header.task.network {
        Network::Deny => "No network: nothing can be downloaded or installed",
        Network::Allow => "Network access",
    };
    let installed: Vec<String> =
        packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
    let installed = if installed.is_empty() {
        "without any packages".to_owned()
    } else {
        format!("with these packages: {}", installed.join(", "))
    };
    format!(
        "- {cores} core{s}{memory}{share}\n\
         - {gpus}\n\
         - {network}\n\
         - Python {python_version} {installed}",
        s = plural(*cores),
    )
}

/// What one script has of the machine.
fn share(containment: &Containment) -> String {
    let Containment { cores, limits, .. } = containment;
    let s = plural(*cores);
    let memory = match limits.memory_bytes {
        u64::MAX => String::new(),
        bytes => format!(", and is killed if it uses more than {} of memory", size(bytes)),
    };
    format!("; a script has {cores} core{s} for itself{memory}")
}

fn gpus(info: &GpuInfo) -> String {
    if info.cuda_available {
        let s = plural(info.gpu_count);
        format!("{} CUDA GPU{s}: {}", info.gpu_count, info.gpu_names.join(", "))
    } else {
        "No GPU".to_owned()
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[expect(clippy::cast_precision_loss, reason = "shown without decimals")]
fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn in_words(limit: Duration) -> String {
    match limit.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds @ 120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{:.1} hours", limit.as_secs_f64() / 3600.0),
    }
}

//! What every agent is told about the task, the data and the machine.

use std::fmt::Write;
use std::time::Duration;

use mle_star_exec::machine::{GpuInfo, Machine};

use crate::evaluate::script_timeout;
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
         # Task\n\n{description}\n\n\
         # Metric\n\n{metric}, to be {direction}d ({words}).\n\n\
         # Hardware\n\n{hardware}\n",
        description = task.description.trim(),
        metric = task.evaluation_metric,
        direction = task.metric_direction,
        words = task.metric_direction.in_words(),
        hardware = gpus(&header.machine.gpus),
    )
}

/// What an agent that writes code must know: the data it finds and the machine it has.
pub fn section(header: &Header) -> String {
    let mut text = format!("# Data in `./input/`\n\n{}\n", header.data.describe().trim_end());
    let Machine { python_version, packages, cores, memory_bytes, gpus: gpu_info, .. } =
        &header.machine;
    let installed: Vec<String> =
        packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
    let network = match header.task.network {
        Network::Deny => "no network: nothing can be downloaded or installed",
        Network::Allow => "network access",
    };
    write!(
        text,
        "\n# Machine that runs the script\n\n\
         - Python {python_version}, {cores} cores, {memory:.0} GiB of memory; {network}\n\
         - {gpus}\n\
         - A script is stopped after {limit}\n\
         - Installed packages: {packages}",
        memory = gibibytes(*memory_bytes),
        gpus = gpus(gpu_info),
        limit = in_words(script_timeout(&header.config).as_secs()),
        packages = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") },
    )
    .ok(); // writing to a `String` cannot fail
    text
}

fn gpus(info: &GpuInfo) -> String {
    if info.cuda_available {
        format!("{} CUDA GPU(s): {}", info.gpu_count, info.gpu_names.join(", "))
    } else {
        "No GPU".to_owned()
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown without decimals")]
fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn in_words(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{:.1} hours", Duration::from_secs(seconds).as_secs_f64() / 3600.0),
    }
}

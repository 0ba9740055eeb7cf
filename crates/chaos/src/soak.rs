//! A long run in a short time: does anything grow that should not?

use crate::simulation::{Sample, Simulation};

/// What a soak came to.
#[derive(Debug, Clone)]
pub struct Soak {
    /// What the process took, as the run went on.
    pub samples: Vec<Sample>,
    /// How long it took.
    pub seconds: f64,
}

impl Soak {
    /// A run of Phase 2 with `outer` times `inner` steps on two paths.
    pub async fn run(outer: u32, inner: u32, every: u64) -> anyhow::Result<Self> {
        let settings = format!("M=2 T={outer} K={inner} L=2 R=3 time_limit_seconds=100000000");
        let simulation = Simulation::new(&settings, every)?;
        let began = std::time::Instant::now();
        simulation.run().await?;
        Ok(Self { samples: simulation.samples(), seconds: began.elapsed().as_secs_f64() })
    }

    /// The first sample after a tenth of the run, when everything is warm, and the last.
    fn ends(&self) -> Option<(Sample, Sample)> {
        let warm = self.samples.get(self.samples.len() / 10)?;
        Some((*warm, *self.samples.last()?))
    }

    /// Memory that a call leaves behind, in bytes.
    pub fn memory_per_call(&self) -> f64 {
        self.ends().map_or(0.0, |(warm, last)| slope(warm, last, |it| it.memory_bytes))
    }

    /// What the journal grows by with a call, in the first half and in the second, in bytes.
    pub fn journal_per_call(&self) -> Option<(f64, f64)> {
        let (warm, last) = self.ends()?;
        let middle = *self.samples.get(self.samples.len() / 2)?;
        let length = |it: Sample| it.journal_bytes;
        Some((slope(warm, middle, length), slope(middle, last, length)))
    }

    /// Files that were open at least and at most.
    pub fn files(&self) -> Option<(u64, u64)> {
        let warm = self.samples.iter().skip(self.samples.len() / 10).map(|it| it.files);
        warm.clone().min().zip(warm.max())
    }

    /// What grew that should not, where a call may leave so many bytes of memory behind. A short run
    /// leaves more: it is still getting warm.
    pub fn complaints(&self, memory_per_call: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        let memory = self.memory_per_call();
        if memory > memory_per_call {
            complaints.push(format!("a call leaves {memory:.0} bytes of memory behind"));
        }
        match self.files() {
            Some((least, most)) if most <= least + 2 => {}
            files => complaints.push(format!("open files grow: {files:?}")),
        }
        match self.journal_per_call() {
            Some((first, second)) if second < first * 1.3 => {}
            journal => complaints.push(format!("calls take more and more journal: {journal:?}")),
        }
        complaints
    }

    /// The figures, as a table.
    pub fn table(&self) -> String {
        let mut text =
            "| calls | resident MB | open files | journal MB |\n| --- | --- | --- | --- |\n"
                .to_owned();
        let step = (self.samples.len() / 10).max(1);
        for it in self.samples.iter().step_by(step) {
            let line = format!(
                "| {} | {:.1} | {} | {:.2} |\n",
                it.calls,
                mega(it.memory_bytes),
                it.files,
                mega(it.journal_bytes)
            );
            text.push_str(&line);
        }
        text
    }
}

fn slope(from: Sample, to: Sample, value: impl Fn(Sample) -> u64) -> f64 {
    let calls = to.calls.saturating_sub(from.calls).max(1);
    (float(value(to)) - float(value(from))) / float(calls)
}

fn mega(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn float(number: u64) -> f64 {
    number as f64
}

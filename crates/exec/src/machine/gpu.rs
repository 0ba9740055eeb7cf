//! The graphics cards that scripts may use: what the driver lists, less what we were not given.
//!
//! Cards are known by their UUIDs. The driver's numbers and CUDA's are not the same where cards
//! differ, and change when a card falls out.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::answer;

/// How long the driver may take to list its devices.
const LIMIT: Duration = Duration::from_secs(5);

/// What the driver is asked. Free memory is left out: it is another number a second later.
const QUERY: [&str; 2] = [
    "--query-gpu=index,uuid,name,memory.total,compute_cap",
    "--format=csv,noheader,nounits", // memory comes in MiB
];

/// How CUDA's list names a slice of a card, which the driver does not list with the cards.
const SLICE: &str = "MIG-";

/// The graphics cards of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// Whether there is at least one.
    pub cuda_available: bool,
    /// How many there are.
    pub gpu_count: usize,
    /// What they are called.
    pub gpu_names: Vec<String>,
    /// What is known of each, in the order in which scripts see them.
    #[serde(default)]
    pub devices: Vec<Gpu>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_because: Option<String>,
}

/// One graphics card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The driver's number for it.
    pub index: u32,
    /// Its name in all the world, such as `GPU-` and 32 digits.
    pub uuid: String,
    /// What it is called.
    pub name: String,
    /// Its memory; 0 if the driver does not say.
    pub memory_bytes: u64,
    /// What its generation can do, such as `9.0`; empty if the driver does not say.
    pub compute_capability: String,
}

impl Gpu {
    /// What `CUDA_VISIBLE_DEVICES` calls it.
    pub(crate) fn handle(&self) -> String {
        if self.uuid.is_empty() { self.index.to_string() } else { self.uuid.clone() }
    }
}

impl GpuInfo {
    fn of(devices: Vec<Gpu>) -> Self {
        Self {
            cuda_available: !devices.is_empty(),
            gpu_count: devices.len(),
            gpu_names: devices.iter().map(|gpu| gpu.name.clone()).collect(),
            devices,
            absent_because: None,
        }
    }

    fn absent(reason: impl Into<String>) -> Self {
        Self { absent_because: Some(reason.into()), ..Self::default() }
    }
}

/// Asks the driver for the cards that we may use. Where there is no driver, or no answer, there
/// are none, and the result says why.
pub async fn detect_gpu_info() -> GpuInfo {
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES");
    let visible = visible.as_ref().map(|list| list.to_string_lossy());
    ask(Command::new("nvidia-smi").args(QUERY), visible.as_deref()).await
}

async fn ask(query: &mut Command, visible: Option<&str>) -> GpuInfo {
    match answer(query, LIMIT).await {
        Ok(rows) => info(&rows, visible),
        Err(reason) => GpuInfo::absent(format!("`nvidia-smi` {reason}")),
    }
}

fn info(rows: &str, visible: Option<&str>) -> GpuInfo {
    let present: Vec<Gpu> = rows.lines().filter_map(gpu).collect();
    if present.is_empty() {
        return GpuInfo::absent("`nvidia-smi` lists no card");
    }
    let Some(visible) = visible else { return GpuInfo::of(present) };
    match chosen(&present, visible) {
        devices if devices.is_empty() => {
            GpuInfo::absent(format!("CUDA_VISIBLE_DEVICES is `{visible}`"))
        }
        devices => GpuInfo::of(devices),
    }
}

/// Reads a row of the driver's table. A card in trouble gets a row of prose, which is none.
fn gpu(row: &str) -> Option<Gpu> {
    let mut fields = row.split(',').map(str::trim);
    let index = fields.next()?.parse().ok()?;
    let uuid = known(fields.next()?);
    let name = known(fields.next()?);
    let mebibytes: u64 = fields.next()?.parse().unwrap_or(0);
    let compute_capability = known(fields.next()?);
    Some(Gpu { index, uuid, name, memory_bytes: mebibytes << 20, compute_capability })
}

/// A field, unless the driver says in brackets that it does not know.
fn known(field: &str) -> String {
    if field.starts_with('[') { String::new() } else { field.to_owned() }
}

/// The cards that a list of CUDA's names, in its order.
///
/// The list ends at the first entry that names no card, such as `-1`, and a list that names a card
/// twice names none.
fn chosen(present: &[Gpu], visible: &str) -> Vec<Gpu> {
    let mut chosen = Vec::new();
    for gpu in visible.split(',').map_while(|entry| named(present, entry.trim())) {
        if chosen.contains(&gpu) {
            return Vec::new();
        }
        chosen.push(gpu);
    }
    chosen
}

/// The card with this number, or the one whose UUID begins like this.
fn named(present: &[Gpu], entry: &str) -> Option<Gpu> {
    if let Ok(index) = entry.parse::<u32>() {
        return present.iter().find(|gpu| gpu.index == index).cloned();
    }
    if entry.starts_with(SLICE) {
        let name = "a slice of a card".to_owned();
        return Some(Gpu { uuid: entry.to_owned(), name, ..Gpu::default() });
    }
    if !entry.starts_with("GPU-") {
        return None;
    }
    let mut matching = present.iter().filter(|gpu| gpu.uuid.starts_with(entry));
    match (matching.next(), matching.next()) {
        (Some(gpu), None) => Some(gpu.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
        0, GPU-aa11, NVIDIA H200, 143771, 9.0\n\
        1, GPU-aa22, NVIDIA H200, 143771, 9.0\n\
        2, GPU-bb33, Tesla V100-SXM2-16GB, 16384, 7.0\n";

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// The numbers of the cards that are seen with such a list.
    fn seen(visible: &str) -> Vec<u32> {
        info(ROWS, Some(visible)).devices.iter().map(|gpu| gpu.index).collect()
    }

    /// REQ-EX-003
    #[test]
    fn cards_are_listed_with_what_the_driver_knows_of_them() {
        let info = info(ROWS, None);
        assert!(info.cuda_available && info.gpu_count == 3);
        assert_eq!(info.gpu_names, ["NVIDIA H200", "NVIDIA H200", "Tesla V100-SXM2-16GB"]);
        let expected = Gpu {
            index: 2,
            uuid: "GPU-bb33".to_owned(),
            name: "Tesla V100-SXM2-16GB".to_owned(),
            memory_bytes: 16 << 30,
            compute_capability: "7.0".to_owned(),
        };
        assert_eq!(info.devices.last(), Some(&expected));
    }

    /// REQ-EX-003
    #[tokio::test]
    async fn without_an_answer_there_are_no_cards_and_the_reason_is_kept() {
        let absent = |reason: &str| GpuInfo::absent(reason);
        let reason = "`nvidia-smi` could not be started: No such file or directory (os error 2)";
        assert_eq!(ask(&mut Command::new("/nonexistent/smi"), None).await, absent(reason));
        // This program complains on standard output.
        let reason = "`nvidia-smi` ended with exit status: 9: no driver";
        assert_eq!(ask(&mut shell("echo no driver; exit 9"), None).await, absent(reason));
        let reason = "`nvidia-smi` lists no card";
        assert_eq!(ask(&mut shell("echo; echo 'Unable to ask.'"), None).await, absent(reason));
        let info = ask(&mut shell(&format!("printf '{ROWS}'")), Some("2")).await;
        assert_eq!((info.gpu_count, info.absent_because), (1, None));
    }

    #[test]
    fn what_the_driver_does_not_know_does_not_hide_a_card() {
        let row = "0, GPU-cc, NVIDIA GB10, [N/A], [Not Supported]";
        let expected =
            Gpu { uuid: "GPU-cc".to_owned(), name: "NVIDIA GB10".to_owned(), ..Gpu::default() };
        assert_eq!(gpu(row), Some(expected));
    }

    #[test]
    fn only_the_cards_that_we_were_given_are_seen_in_the_order_given() {
        assert_eq!(seen("0,1,2"), [0, 1, 2]);
        assert_eq!(seen(" 2, 0"), [2, 0]);
        assert_eq!(seen("GPU-bb33,GPU-aa1"), [2, 0]);
        assert_eq!(seen("GPU-b"), [2]);
    }

    #[test]
    fn the_list_ends_at_the_first_entry_that_names_no_card() {
        assert_eq!(seen("1,-1,0"), [1]);
        assert_eq!(seen("2,3,0"), [2]);
        assert_eq!(seen("2,GPU-aa,0"), [2]); // two cards begin like this
        assert_eq!(seen("2,,0"), [2]);
        for none in ["", "-1", "none", "NoDevFiles", "7", "GPU-", "1,1", "0,GPU-aa11"] {
            let expected = GpuInfo::absent(format!("CUDA_VISIBLE_DEVICES is `{none}`"));
            assert_eq!(info(ROWS, Some(none)), expected);
        }
    }

    #[test]
    fn a_slice_of_a_card_is_taken_at_its_word() {
        let info = info(ROWS, Some("MIG-12,MIG-34"));
        assert_eq!(info.gpu_count, 2);
        assert_eq!(info.devices.iter().map(Gpu::handle).collect::<Vec<_>>(), ["MIG-12", "MIG-34"]);
    }

    /// REQ-EX-003
    #[test]
    fn journals_keep_their_words_and_old_ones_can_be_read() {
        let old = r#"{"cuda_available":true,"gpu_count":1,"gpu_names":["NVIDIA L4"]}"#;
        let read: GpuInfo = serde_json::from_str(old).unwrap();
        let expected = GpuInfo {
            cuda_available: true,
            gpu_count: 1,
            gpu_names: vec!["NVIDIA L4".to_owned()],
            ..GpuInfo::default()
        };
        assert_eq!(read, expected);

        let written = serde_json::to_string(&GpuInfo::default()).unwrap();
        let new = r#"{"cuda_available":false,"gpu_count":0,"gpu_names":[],"devices":[]}"#;
        assert_eq!(written, new);
    }
}

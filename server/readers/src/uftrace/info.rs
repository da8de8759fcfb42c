//! The member `info`: a header of forty bytes, then lines of `key:value`.

use crate::perf_data::bytes::Order;
use heatline_profile::{BuildId, Recording};

/// What `info` starts with.
pub(super) const MAGIC: &[u8] = b"Ftrace!\0";

/// Bytes of the header.
const HEADER: usize = 40;

/// Versions of the format that records are read of.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=4;

/// Bits of the header's features.
mod feature {
    pub const KERNEL: u64 = 1 << 2;
    pub const PERF_EVENT: u64 = 1 << 8;
}

/// What `info` says.
#[derive(Debug)]
pub(super) struct Info {
    pub order: Order,
    /// The version, where it is none that we know.
    pub strange_version: Option<u32>,
    /// Whether functions of the kernel were traced.
    pub has_kernel: bool,
    /// Whether scheduling was recorded; `None` where `info` is damaged or missing.
    pub has_events: Option<bool>,
    pub executable: Option<(String, Option<BuildId>)>,
    pub tids: Vec<i32>,
    pub recording: Recording,
    /// Whether the text that belongs to the header is missing: the recorder writes it last.
    pub unfinished: bool,
}

impl Default for Info {
    fn default() -> Self {
        Info {
            order: Order::Little,
            strange_version: None,
            has_kernel: false,
            has_events: None,
            executable: None,
            tids: Vec::new(),
            recording: Recording::default(),
            unfinished: true,
        }
    }
}

impl Info {
    /// Reads as much as there is.
    pub fn parse(bytes: &[u8]) -> Info {
        let mut info = Info::default();
        if bytes.get(13) == Some(&2) {
            info.order = Order::Big;
        }
        if let Some(version) = info.order.u32_at(bytes, 8).filter(|version| !VERSIONS.contains(version)) {
            info.strange_version = Some(version);
        }
        if let Some(features) = info.order.u64_at(bytes, 16) {
            info.has_kernel = features & feature::KERNEL != 0;
            info.has_events = Some(features & feature::PERF_EVENT != 0);
        }
        let text = String::from_utf8_lossy(bytes.get(HEADER..).unwrap_or_default());
        let mut build_id = None;
        let mut executable = None;
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            match key {
                "exename" => executable = Some(value.to_owned()),
                "build_id" => build_id = parse_build_id(value),
                "cmdline" => info.recording.command_line = value.split_whitespace().map(str::to_owned).collect(),
                "cpuinfo" => info.recording.cpu = after(value, "desc=").or(info.recording.cpu),
                "osinfo" => info.recording.os_release = after(value, "kernel=Linux ").or(info.recording.os_release),
                "taskinfo" => info.tids.extend(tids(value)),
                "uftrace_version" => {
                    let version = value.split_whitespace().next().unwrap_or_default();
                    info.recording.recorder = Some(format!("uftrace {version}"));
                }
                _ => {}
            }
            info.unfinished = false;
        }
        info.executable = executable.map(|path| (path, build_id));
        info
    }

    /// Whether the recorder was told to leave scheduling out, or nothing says that it was not.
    pub fn without_scheduling(&self) -> bool {
        self.has_events != Some(true)
            || self.recording.command_line.iter().any(|word| word == "--no-event" || word == "--no-sched")
    }
}

fn after(value: &str, key: &str) -> Option<String> {
    value.strip_prefix(key).map(|rest| rest.trim().to_owned())
}

fn tids(value: &str) -> Vec<i32> {
    value
        .strip_prefix("tids=")
        .map(|list| list.split(',').filter_map(|tid| tid.trim().parse().ok()).collect())
        .unwrap_or_default()
}

/// A build id in hexadecimal digits.
pub(super) fn parse_build_id(text: &str) -> Option<BuildId> {
    let digits = text.trim().as_bytes();
    if digits.is_empty() || digits.len() > 128 || !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
    bytes.filter(|bytes| bytes.iter().any(|&byte| byte != 0)).map(BuildId)
}

//! Records in words, one by one, for people and programs that look into a file.

use super::accesses::MemorySource;
use super::attr::{Attr, sample_type as bit};
use super::blocks::Record;
use super::branches::branches;
use super::bytes::{Cursor, Order};
use super::fields::Fields;
use super::layout::Layout;
use super::state::{Change, FileIdentity, Mode, misc, record_type as kind};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Told of every record, in the order of the file, and of the feature sections if it wants to know.
#[derive(Clone)]
pub struct RecordSink {
    record: Arc<Mutex<Take<RecordFields>>>,
    feature: Option<Arc<Mutex<Take<FeatureFields>>>>,
}

type Take<T> = dyn FnMut(&T) + Send;

impl RecordSink {
    /// A sink that hands each record to `take`.
    pub fn new(take: impl FnMut(&RecordFields) + Send + 'static) -> RecordSink {
        RecordSink { record: Arc::new(Mutex::new(take)), feature: None }
    }

    /// The same, handing each feature section that holds facts of the recording to `take`.
    #[must_use]
    pub fn with_features(self, take: impl FnMut(&FeatureFields) + Send + 'static) -> RecordSink {
        RecordSink { feature: Some(Arc::new(Mutex::new(take))), ..self }
    }

    pub(super) fn take_feature(&self, feature: &FeatureFields) {
        if let Some(take) = &self.feature {
            (take.lock().unwrap_or_else(PoisonError::into_inner))(feature);
        }
    }

    pub(super) fn take(&self, record: &RecordFields) {
        (self.record.lock().unwrap_or_else(PoisonError::into_inner))(record);
    }
}

impl fmt::Debug for RecordSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordSink")
    }
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldValue {
    /// A count, size, time or id.
    Number(u64),
    /// A process or thread, −1 where unknown.
    Task(i32),
    /// An address, serialized as hex.
    Address(u64),
    /// Addresses; in call chains the markers between them too.
    Addresses(Vec<u64>),
    /// Anything in words.
    Text(String),
    /// Several of them.
    Texts(Vec<String>),
}

/// One record: its type and position, and its fields by name. Serializes as one map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordFields {
    /// The type as the kernel and perf name it, without their prefixes: `SAMPLE`, `MMAP2`, `FINISHED_ROUND`.
    pub kind: String,
    /// Position of the record in its file; of a compressed record, that of the one it was in.
    pub offset: u64,
    /// What the record holds, in its own order.
    pub fields: Vec<(&'static str, FieldValue)>,
}

impl Serialize for RecordFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_map(("type", &self.kind), self.offset, &self.fields, serializer)
    }
}

/// One feature section: its name and position, and its fields by name. Serializes as one map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureFields {
    /// The name that perf gives it, without its prefix: `CMDLINE`, `SAMPLE_TIME`.
    pub name: &'static str,
    /// Position of the section in its file; of a pipe's, that of its record.
    pub offset: u64,
    /// What the section holds, in its own order.
    pub fields: Vec<(&'static str, FieldValue)>,
}

impl Serialize for FeatureFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_map(("name", self.name), self.offset, &self.fields, serializer)
    }
}

fn serialize_map<S: Serializer>(
    heading: (&str, &str),
    offset: u64,
    fields: &[(&'static str, FieldValue)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(fields.len() + 2))?;
    map.serialize_entry(heading.0, heading.1)?;
    map.serialize_entry("offset", &offset)?;
    for (name, value) in fields {
        match value {
            FieldValue::Number(number) => map.serialize_entry(name, number)?,
            FieldValue::Task(number) => map.serialize_entry(name, number)?,
            FieldValue::Address(address) => map.serialize_entry(name, &format!("{address:#x}"))?,
            FieldValue::Addresses(all) => {
                let texts: Vec<String> = all.iter().map(|address| format!("{address:#x}")).collect();
                map.serialize_entry(name, &texts)?;
            }
            FieldValue::Text(text) => map.serialize_entry(name, text)?,
            FieldValue::Texts(texts) => map.serialize_entry(name, texts)?,
        }
    }
    map.end()
}

/// What describing needs of the event that a record belongs to.
pub(super) struct Known<'a> {
    pub attr: Option<&'a Attr>,
    pub layout: Option<&'a Layout>,
    pub name: Option<String>,
    pub order: Order,
}

type List = Vec<(&'static str, FieldValue)>;

/// A record in words. What is damaged is left out.
pub(super) fn describe(record: &Record<'_>, known: &Known<'_>) -> RecordFields {
    let mut fields = List::new();
    let (body, order) = (record.body, known.order);
    if record.kind == kind::SAMPLE {
        sample(record, known, &mut fields);
    } else {
        match Change::parse(record.kind, record.misc, body, order) {
            Some(change) => change_fields(change, &mut fields),
            None => other(record, order, &mut fields),
        }
        if record.kind < kind::USER
            && let Some(layout) = known.layout
        {
            let trailer = layout.trailer(body, order);
            fields.extend(trailer.time.map(|time| ("time", FieldValue::Number(time))));
            fields.extend(trailer.cpu.map(|cpu| ("cpu", FieldValue::Number(cpu.into()))));
        }
    }
    fields.push(("size", FieldValue::Number(body.len() as u64 + 8)));
    RecordFields { kind: type_name(record.kind), offset: record.offset, fields }
}

fn sample(record: &Record<'_>, known: &Known<'_>, out: &mut List) -> Option<()> {
    use FieldValue::{Address, Addresses, Number, Task, Text};
    let (attr, layout, order) = (known.attr?, known.layout?, known.order);
    out.extend(known.name.clone().map(|name| ("event", Text(name))));
    let head = layout.head(record.body, order)?;
    out.push(("mode", Text(mode_name(Mode::of_misc(record.misc)).into())));
    out.extend(head.ip.map(|ip| ("ip", Address(ip))));
    if attr.sample_type & bit::TID != 0 {
        out.extend([("pid", Task(head.pid)), ("tid", Task(head.tid))]);
    }
    out.extend(head.time.map(|time| ("time", Number(time))));
    out.extend(layout.data_address(record.body, order).map(|address| ("address", Address(address))));
    out.extend(head.cpu.map(|cpu| ("cpu", Number(cpu.into()))));
    out.push(("period", Number(head.period)));
    let words = |bytes: &[u8]| bytes.as_chunks::<8>().0.iter().map(|&word| order.u64(word)).collect::<Vec<_>>();
    let (chain, rest) = if layout.has_readings() {
        let (readings, chain, rest) = layout.readings(record.body, order)?;
        let values: Vec<String> = readings.iter().map(|reading| reading.value.to_string()).collect();
        out.push(("readings", Text(values.join(" "))));
        (chain, rest)
    } else {
        layout.chain(record.body, order)?
    };
    if layout.has_chains() {
        out.push(("callchain", Addresses(words(chain))));
    }
    let fields = Fields::parse(attr, rest, order)?;
    if let Some(recorded) = fields.branches {
        let ends = branches(recorded.entries, order).flat_map(|branch| [branch.from, branch.to]).collect();
        out.push(("branches", Addresses(ends)));
    }
    out.extend(fields.raw.map(|raw| ("raw_size", Number(raw.len() as u64))));
    out.extend(fields.user_registers.map(|registers| ("user_registers", Addresses(words(registers.values)))));
    out.extend(fields.user_stack.map(|stack| ("user_stack_size", Number(stack.bytes.len() as u64))));
    if let Some(weight) = fields.weight {
        weights(weight, attr.sample_type & bit::WEIGHT_STRUCT != 0, out);
    }
    if let Some(source) = fields.data_source {
        out.push(("data_source", Address(source)));
        out.extend(MemorySource(source).words().into_iter().map(|(name, word)| (name, Text(word.into()))));
    }
    out.extend(fields.transaction.map(|flags| ("transaction", Address(flags))));
    out.extend(fields.interrupt_registers.map(|registers| ("interrupt_registers", Addresses(words(registers.values)))));
    out.extend(fields.physical_address.map(|address| ("physical_address", Address(address))));
    out.extend(fields.cgroup.map(|cgroup| ("cgroup", Number(cgroup))));
    out.extend(fields.data_page_size.map(|size| ("data_page_size", Number(size))));
    out.extend(fields.code_page_size.map(|size| ("code_page_size", Number(size))));
    out.extend(fields.aux.map(|aux| ("aux_size", Number(aux.len() as u64))));
    Some(())
}

/// A weight as one number, or as one of 32 and two of 16 bits, the latter where they are not 0.
fn weights(weight: u64, is_struct: bool, out: &mut List) {
    use FieldValue::Number;
    if !is_struct {
        return out.push(("weight", Number(weight)));
    }
    out.push(("weight", Number(weight & 0xffff_ffff)));
    let more = [("instruction_latency", weight >> 32 & 0xffff), ("stage_latency", weight >> 48)];
    out.extend(more.into_iter().filter(|(_, part)| *part > 0).map(|(name, part)| (name, Number(part))));
}

fn change_fields(change: Change, out: &mut List) {
    use FieldValue::{Address, Number, Task, Text};
    match change {
        Change::Map(mapping) => {
            out.push(("mode", Text(mode_name(mapping.mode).into())));
            out.push(("pid", Task(mapping.pid)));
            out.extend([("address", Address(mapping.start)), ("length", Address(mapping.length))]);
            out.extend([("file_offset", Address(mapping.file_offset)), ("path", Text(mapping.path))]);
            match mapping.file {
                FileIdentity::BuildId(id) => out.push(("build_id", Text(id.to_string()))),
                FileIdentity::Inode { inode, .. } => out.push(("inode", Number(inode))),
                FileIdentity::None => {}
            }
        }
        Change::Comm { pid, tid, comm } => out.extend([("pid", Task(pid)), ("tid", Task(tid)), ("comm", Text(comm))]),
        Change::Fork { pid, tid, parent_pid, parent_tid, .. } => {
            out.extend([("pid", Task(pid)), ("tid", Task(tid))]);
            out.extend([("parent_pid", Task(parent_pid)), ("parent_tid", Task(parent_tid))]);
        }
        Change::Exit { pid, tid } => out.extend([("pid", Task(pid)), ("tid", Task(tid))]),
        Change::Thread { tid, .. } => out.push(("tid", Task(tid))),
        Change::Switch { cpu, tid } => out.extend([("cpu", Number(cpu.into())), ("tid", Task(tid))]),
        Change::KernelSymbol { start, length, name, gone } => {
            out.extend([("address", Address(start)), ("length", Address(length)), ("name", Text(name))]);
            out.push(("change", Text(if gone { "unregistered" } else { "registered" }.into())));
        }
    }
}

/// Records whose first words have plain meanings.
fn other(record: &Record<'_>, order: Order, out: &mut List) {
    let names: &[&'static str] = match record.kind {
        kind::LOST => &["id", "lost"],
        kind::THROTTLE | kind::UNTHROTTLE => &["throttle_time", "id", "stream_id"],
        kind::AUX => &["aux_offset", "aux_size", "flags"],
        kind::LOST_SAMPLES => &["lost"],
        kind::AUXTRACE => &["aux_size", "aux_offset", "reference"],
        kind::CALLCHAIN_DEFERRED => &["cookie", "count"],
        kind::TIME_CONV => &["time_shift", "time_mult", "time_zero"],
        kind::ID_INDEX => &["count"],
        kind::COMPRESSED2 => &["compressed_size"],
        kind::HEADER_FEATURE => &["feature"],
        _ => &[],
    };
    let mut cursor = Cursor::new(record.body, order);
    for name in names {
        out.extend(cursor.u64().map(|value| (*name, FieldValue::Number(value))));
    }
    if matches!(record.kind, kind::SWITCH | kind::SWITCH_CPU_WIDE) {
        let direction = if record.misc & misc::SWITCH_OUT != 0 { "out" } else { "in" };
        out.push(("direction", FieldValue::Text(direction.into())));
        if record.kind == kind::SWITCH_CPU_WIDE {
            let name = ["pid", "tid"];
            out.extend(name.iter().filter_map(|name| Some((*name, FieldValue::Task(cursor.i32()?)))));
        }
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Unknown => "unknown",
        Mode::Kernel => "kernel",
        Mode::User => "user",
        Mode::Hypervisor => "hypervisor",
        Mode::GuestKernel => "guest-kernel",
        Mode::GuestUser => "guest-user",
    }
}

/// The kernel's record types from 1 on, and perf's from 64 on.
const KERNEL_TYPES: [&str; 22] = [
    "MMAP",
    "LOST",
    "COMM",
    "EXIT",
    "THROTTLE",
    "UNTHROTTLE",
    "FORK",
    "READ",
    "SAMPLE",
    "MMAP2",
    "AUX",
    "ITRACE_START",
    "LOST_SAMPLES",
    "SWITCH",
    "SWITCH_CPU_WIDE",
    "NAMESPACES",
    "KSYMBOL",
    "BPF_EVENT",
    "CGROUP",
    "TEXT_POKE",
    "AUX_OUTPUT_HW_ID",
    "CALLCHAIN_DEFERRED",
];
const USER_TYPES: [&str; 20] = [
    "HEADER_ATTR",
    "HEADER_EVENT_TYPE",
    "HEADER_TRACING_DATA",
    "HEADER_BUILD_ID",
    "FINISHED_ROUND",
    "ID_INDEX",
    "AUXTRACE_INFO",
    "AUXTRACE",
    "AUXTRACE_ERROR",
    "THREAD_MAP",
    "CPU_MAP",
    "STAT_CONFIG",
    "STAT",
    "STAT_ROUND",
    "EVENT_UPDATE",
    "TIME_CONV",
    "HEADER_FEATURE",
    "COMPRESSED",
    "FINISHED_INIT",
    "COMPRESSED2",
];

fn type_name(record_kind: u32) -> String {
    let user = record_kind.checked_sub(kind::USER).and_then(|number| USER_TYPES.get(number as usize));
    let kernel = record_kind.checked_sub(1).and_then(|number| KERNEL_TYPES.get(number as usize));
    user.or(kernel).map_or_else(|| format!("TYPE_{record_kind}"), |name| (*name).to_owned())
}

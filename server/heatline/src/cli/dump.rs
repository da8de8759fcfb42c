//! `heatline dump`: what is in a file, record by record.

use super::dump_filter::DumpFilter;
use super::options::{Format, cpu_list, number, raw_module};
use super::progress::Bar;
use super::selected::outside_of_time;
use crate::load::read_profile;
use crate::time_choice::TimeChoice;
use crate::which_profile::{choice_sentence, profile_at};
use anyhow::{Context, bail};
use clap::Args;
use heatline_profile::{Profile, ProfileKind, Silent};
use heatline_readers::{Input, ReadOptions, TimeFilter, perf_data, spe, spt};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Options of `heatline dump`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline dump app.spt                      everything in an SPT file
  heatline dump app.spt --header --progid    only some of it; /header /progid say the same
  heatline dump perf.data                    every record, and Arm SPE records where there are any
  heatline dump perf.data --format json      one object per line
  heatline dump perf.data --packets          Arm SPE packets too
  heatline dump perf.data --tid 7,8          only records that name these threads
  perf record -o - ./app | heatline dump -   records as they come")]
pub struct DumpArgs {
    /// The profile ("-": standard input). What comes through a pipe is written as it comes.
    profile: PathBuf,
    /// SPT: the header's fields.
    #[arg(long)]
    header: bool,
    /// SPT: name, GUID and age of each binary.
    #[arg(long)]
    progid: bool,
    /// SPT: the string table.
    #[arg(long)]
    strtab: bool,
    /// SPT: the records.
    #[arg(long)]
    event: bool,
    /// Everything; the default.
    #[arg(long)]
    all: bool,
    /// Arm SPE: packets as well as records.
    #[arg(long)]
    packets: bool,
    /// Only records of these processors: 0,2-3.
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
    /// Only records between two times of the recording's clock, in seconds, either may be missing; or 10%-20%, 10%/2.
    #[arg(long, value_name = "A,B")]
    time: Option<String>,
    /// Only records of these processes (comma-separated).
    #[arg(long, value_name = "PIDS", value_delimiter = ',', value_parser = number::<i64>)]
    pid: Vec<i64>,
    /// Only records of these threads (comma-separated).
    #[arg(long, value_name = "TIDS", value_delimiter = ',', value_parser = number::<i64>)]
    tid: Vec<i64>,
    /// Only records of threads of these names (comma-separated).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    comm: Vec<String>,
    /// The binary at BASE, for raw SPE buffers. May be repeated.
    #[arg(long, value_name = "PATH@BASE")]
    module: Vec<String>,
    /// How to write; JSON is one object per line.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl DumpArgs {
    fn filter(&self, path: &Path) -> anyhow::Result<DumpFilter> {
        Ok(DumpFilter {
            time: self.times(path)?,
            cpus: self.cpu.as_deref().map(cpu_list).transpose()?,
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            comms: self.comm.clone(),
            ..DumpFilter::default()
        })
    }

    fn times(&self, path: &Path) -> anyhow::Result<Option<TimeFilter>> {
        let choice = self.time.as_deref().map(TimeChoice::parse).transpose()?;
        choice.map(|choice| choice.of(path, &Bar::new())).transpose()
    }
}

/// Options as Microsoft's SPTDump spells them, `/header` for `--header`, in the arguments of `heatline dump`.
pub fn respell(mut arguments: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    if arguments.get(1).is_some_and(|command| command == "dump") {
        for argument in arguments.iter_mut().skip(2) {
            let word = argument.to_str().and_then(|text| text.strip_prefix('/')).map(str::to_ascii_lowercase);
            if let Some(word) =
                word.filter(|word| ["all", "header", "progid", "strtab", "event", "help"].contains(&&**word))
            {
                *argument = format!("--{word}").into();
            }
        }
    }
    arguments
}

/// Runs the command.
pub fn run(args: DumpArgs) -> anyhow::Result<()> {
    let path = profile_at(&args.profile)?;
    if let Some(choice) = choice_sentence(&args.profile) {
        super::output::say(format_args!("{choice}"));
    }
    if args.format == Format::Csv {
        bail!("--format csv: records of different kinds make no table; use json");
    }
    let mut source = Source::open(&path)?;
    match source.kind {
        Some(ProfileKind::Spt) => dump_spt(&path, &mut source, &args),
        _ => dump_records(&path, &mut source, &args),
    }
}

/// Where a profile comes from, of which the front was looked at.
struct Source {
    input: Bytes,
    kind: Option<ProfileKind>,
}

enum Bytes {
    /// A folder, which is opened by its path.
    Folder,
    File(File),
    /// Something that cannot be read twice, with its front.
    Stream(Box<dyn Read + Send>),
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Source> {
        let name = || path.display().to_string();
        if path.is_dir() {
            return Ok(Source { input: Bytes::Folder, kind: None });
        }
        let mut stream: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let mut file = File::open(path).with_context(name)?;
            if file.metadata().with_context(name)?.is_file() {
                let kind = heatline_readers::recognise(&front(&mut file).with_context(name)?);
                file.rewind().with_context(name)?;
                return Ok(Source { input: Bytes::File(file), kind });
            }
            Box::new(file)
        };
        let head = front(&mut stream).with_context(name)?;
        let kind = heatline_readers::recognise(&head);
        Ok(Source { input: Bytes::Stream(Box::new(io::Cursor::new(head).chain(stream))), kind })
    }
}

/// As many bytes as decide what a file is.
fn front(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(heatline_readers::HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Prints everything in a file, for people.
///
/// # Errors
/// If it is no profile.
pub fn everything(path: &Path) -> anyhow::Result<()> {
    run(DumpArgs {
        profile: path.to_owned(),
        header: false,
        progid: false,
        strtab: false,
        event: false,
        all: true,
        packets: false,
        cpu: None,
        time: None,
        pid: Vec::new(),
        tid: Vec::new(),
        comm: Vec::new(),
        module: Vec::new(),
        format: Format::Table,
    })
}

/// A line of a perf.data dump.
#[derive(serde::Serialize)]
struct PerfRecord<'a> {
    perf: &'a perf_data::RecordFields,
}

/// A line of a perf.data dump about the recording as a whole.
#[derive(serde::Serialize)]
struct PerfFeature<'a> {
    feature: &'a perf_data::FeatureFields,
}

/// Standard output, and the first failure to write to it; what comes after it is dropped.
struct Out {
    writer: io::BufWriter<io::Stdout>,
    failed: Option<io::Error>,
    any: bool,
    /// Records that passed the filters.
    passed: u64,
    filter: DumpFilter,
}

/// Whether the filters of a dump let a record pass.
fn wants(out: &Mutex<Out>, record: &impl serde::Serialize) -> bool {
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    out.any = true;
    let passes = out.filter.is_empty() || serde_json::to_value(record).is_ok_and(|record| out.filter.passes(&record));
    out.passed += u64::from(passes);
    passes
}

impl Out {
    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        self.any = true;
        if self.failed.is_none() {
            self.failed = write(&mut self.writer).err();
        }
    }
}

fn dump_spt(path: &Path, source: &mut Source, args: &DumpArgs) -> anyhow::Result<()> {
    if !args.filter(path)?.is_empty() {
        bail!(
            "an SPT file knows no times, processors, processes or threads; leave out --time, --cpu, --pid, --tid and --comm"
        );
    }
    let input = match &mut source.input {
        Bytes::File(file) => Input::File(file),
        Bytes::Stream(stream) => Input::Stream(stream),
        Bytes::Folder => bail!("{}: expected a file, found a folder", path.display()),
    };
    let chosen = spt::Views { header: args.header, strings: args.strtab, programs: args.progid, events: args.event };
    let views = if args.all || chosen == spt::Views::default() { spt::Views::ALL } else { chosen };
    let format = if args.format == Format::Json { spt::DumpFormat::Json } else { spt::DumpFormat::Text };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let outcome = spt::dump(input, &mut out, views, format, &spt::Options::default(), &Silent);
    let flushed = out.flush();
    let damaged = outcome.with_context(|| path.display().to_string())?;
    flushed.context("standard output")?;
    if damaged {
        super::output::say(format_args!("warning: {}: damaged in part; the dump says where", path.display()));
    }
    Ok(())
}

/// Records are written as they are read; what could not be written ends the output, not the reading.
fn dump_records(path: &Path, source: &mut Source, args: &DumpArgs) -> anyhow::Result<()> {
    let json = args.format == Format::Json;
    let writer = io::BufWriter::with_capacity(1 << 16, io::stdout());
    let out = Arc::new(Mutex::new(Out { writer, failed: None, any: false, passed: 0, filter: args.filter(path)? }));
    let lock = |out: &Mutex<Out>, write: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        out.lock().unwrap_or_else(PoisonError::into_inner).write(|writer| write(writer));
    };
    let (spe_out, record_out, feature_out) = (Arc::clone(&out), Arc::clone(&out), Arc::clone(&out));
    let sink = spe::Sink::new(args.packets, move |item| {
        if match &item {
            spe::Item::Record(record) => wants(&spe_out, &**record),
            _ => true,
        } {
            lock(&spe_out, &|writer| write_item(writer, &item, json));
        }
    });
    let records = perf_data::RecordSink::new(move |record| {
        if wants(&record_out, record) {
            lock(&record_out, &|writer| write_item(writer, &PerfRecord { perf: record }, json));
        }
    });
    let records = records.with_features(move |feature| {
        lock(&feature_out, &|writer| write_item(writer, &PerfFeature { feature }, json));
    });
    let options = ReadOptions {
        time: args.times(path)?,
        cpus: args.cpu.as_deref().map(cpu_list).transpose()?,
        records: Some(records),
        spe: spe::Options {
            modules: args.module.iter().map(|text| raw_module(text)).collect::<anyhow::Result<_>>()?,
            sink: Some(sink),
            ..spe::Options::default()
        },
        ..ReadOptions::default()
    };
    let profile = match &mut source.input {
        Bytes::Stream(stream) => heatline_readers::read(Input::Stream(stream), &options, &Silent)
            .with_context(|| path.display().to_string())?,
        _ => read_profile(path, &options, &Bar::new())?,
    };
    super::output::warn(&profile.problems);
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    let flushed = out.writer.flush();
    if let Some(error) = out.failed.take().or(flushed.err()) {
        return Err(error).context("standard output");
    }
    if !out.any {
        if profile.kind == ProfileKind::Uftrace {
            bail!("{0}: records of uftrace are not shown here; 'uftrace dump -d {0}' shows them", path.display());
        }
        let kind = source.kind.map_or("file", ProfileKind::name);
        bail!("{}: no records in this {kind}", path.display());
    }
    if out.passed == 0 && !out.filter.is_empty() {
        super::output::say(format_args!("warning: {}", nothing_passes(args, path, &profile)));
    }
    Ok(())
}

/// What to say where the filters leave no record.
fn nothing_passes(args: &DumpArgs, path: &Path, profile: &Profile) -> String {
    match &args.time {
        Some(time) if args.cpu.is_none() && args.pid.is_empty() && args.tid.is_empty() && args.comm.is_empty() => {
            outside_of_time(time, &[path.to_owned()], profile.recording.span)
        }
        _ => "no record is what --time, --cpu, --pid, --tid and --comm ask for; 'heatline report --by thread' lists threads"
            .to_owned(),
    }
}

fn write_item(out: &mut dyn Write, item: &impl serde::Serialize, json: bool) -> io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, item)?;
        return writeln!(out);
    }
    let value = serde_json::to_value(item)?;
    for (kind, fields) in value.as_object().into_iter().flatten() {
        write!(out, "{kind}")?;
        // What it is and where come first, whatever their names.
        let first = [if kind == "feature" { "name" } else { "type" }, "offset"];
        let fields = fields.as_object();
        let named = first.iter().filter_map(|&name| Some((name, fields?.get(name)?)));
        let rest = fields.into_iter().flatten().map(|(name, value)| (name.as_str(), value));
        for (name, value) in named.chain(rest.filter(|(name, _)| !first.contains(name))) {
            write!(out, "  {name} {}", plain(value))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A JSON value for people: lists by commas, texts without quotes.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => super::output::printable(text).into_owned(),
        serde_json::Value::Array(values) if values.is_empty() => "-".into(),
        serde_json::Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{}:{}", super::output::printable(name), plain(value)))
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    }
}

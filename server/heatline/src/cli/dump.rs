//! `heatline dump`: what is in a file, record by record.

use super::options::{Format, cpu_list, raw_module, time_range};
use super::progress::Bar;
use crate::load::{profile_at, read_profile};
use anyhow::{Context, bail};
use clap::Args;
use heatline_profile::{ProfileKind, Silent};
use heatline_readers::{Input, ReadOptions, perf_data, spe, spt};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Options of `heatline dump`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline dump app.spt                      everything in an SPT file
  heatline dump app.spt --header --progid    only some of it; /header /progid say the same
  heatline dump perf.data                    every record, and Arm SPE records where there are any
  heatline dump perf.data --format json      one object per line
  heatline dump perf.data --packets          Arm SPE packets too")]
pub struct DumpArgs {
    /// The profile.
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
    /// Only records between two times of the recording's clock, in seconds; either may be missing.
    #[arg(long, value_name = "A,B")]
    time: Option<String>,
    /// The binary at BASE, for raw SPE buffers. May be repeated.
    #[arg(long, value_name = "PATH@BASE")]
    module: Vec<String>,
    /// How to write; JSON is one object per line.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
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
    if args.format == Format::Csv {
        bail!("--format csv: records of different kinds make no table; use json");
    }
    match kind_of(&path)? {
        Some(ProfileKind::Spt) => dump_spt(&path, &args),
        kind => dump_records(&path, kind, &args),
    }
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
}

impl Out {
    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        self.any = true;
        if self.failed.is_none() {
            self.failed = write(&mut self.writer).err();
        }
    }
}

fn kind_of(path: &Path) -> anyhow::Result<Option<ProfileKind>> {
    if path.is_dir() {
        return Ok(None);
    }
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(heatline_readers::HEAD as u64).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    Ok(heatline_readers::recognise(&head))
}

fn dump_spt(path: &Path, args: &DumpArgs) -> anyhow::Result<()> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let chosen = spt::Views { header: args.header, strings: args.strtab, programs: args.progid, events: args.event };
    let views = if args.all || chosen == spt::Views::default() { spt::Views::ALL } else { chosen };
    let format = if args.format == Format::Json { spt::DumpFormat::Json } else { spt::DumpFormat::Text };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let outcome = spt::dump(Input::File(&mut file), &mut out, views, format, &spt::Options::default(), &Silent);
    let flushed = out.flush();
    let damaged = outcome.with_context(|| path.display().to_string())?;
    flushed.context("standard output")?;
    if damaged {
        super::output::say(format_args!("warning: {}: damaged in part; the dump says where", path.display()));
    }
    Ok(())
}

/// Records are written as they are read; what could not be written ends the output, not the reading.
fn dump_records(path: &Path, kind: Option<ProfileKind>, args: &DumpArgs) -> anyhow::Result<()> {
    let json = args.format == Format::Json;
    let writer = io::BufWriter::with_capacity(1 << 16, io::stdout());
    let out = Arc::new(Mutex::new(Out { writer, failed: None, any: false }));
    let lock = |out: &Mutex<Out>, write: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        out.lock().unwrap_or_else(PoisonError::into_inner).write(|writer| write(writer));
    };
    let (spe_out, record_out, feature_out) = (Arc::clone(&out), Arc::clone(&out), Arc::clone(&out));
    let sink = spe::Sink::new(args.packets, move |item| lock(&spe_out, &|writer| write_item(writer, &item, json)));
    let records = perf_data::RecordSink::new(move |record| {
        lock(&record_out, &|writer| write_item(writer, &PerfRecord { perf: record }, json));
    });
    let records = records.with_features(move |feature| {
        lock(&feature_out, &|writer| write_item(writer, &PerfFeature { feature }, json));
    });
    let options = ReadOptions {
        time: args.time.as_deref().map(time_range).transpose()?,
        cpus: args.cpu.as_deref().map(cpu_list).transpose()?,
        records: Some(records),
        spe: spe::Options {
            modules: args.module.iter().map(|text| raw_module(text)).collect::<anyhow::Result<_>>()?,
            sink: Some(sink),
            ..spe::Options::default()
        },
        ..ReadOptions::default()
    };
    let profile = read_profile(path, &options, &Bar::new())?;
    super::output::warn(&profile.problems);
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    let flushed = out.writer.flush();
    if let Some(error) = out.failed.take().or(flushed.err()) {
        return Err(error).context("standard output");
    }
    if !out.any {
        let kind = kind.map_or("file", ProfileKind::name);
        bail!("{}: no records in this {kind}", path.display());
    }
    Ok(())
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
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

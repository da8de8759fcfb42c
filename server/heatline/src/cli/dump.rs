//! `heatline dump`: what is in a file, record by record.

use super::options::{Format, cpu_list, raw_module, time_range};
use super::progress::Bar;
use crate::load::{profile_at, read_profile};
use anyhow::{Context, bail};
use clap::Args;
use heatline_profile::{ProfileKind, Silent};
use heatline_readers::{Input, ReadOptions, spe, spt};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Options of `heatline dump`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline dump app.spt                      everything in an SPT file
  heatline dump app.spt --header --progid    only some of it; /header /progid say the same
  heatline dump perf.data --format json      Arm SPE records, one object per line
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
        _ => dump_spe(&path, &args),
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
        eprintln!("heatline: warning: {}: damaged in part; the dump says where", path.display());
    }
    Ok(())
}

/// Records are written as they are decoded; what could not be written ends the output, not the decoding.
fn dump_spe(path: &Path, args: &DumpArgs) -> anyhow::Result<()> {
    let json = args.format == Format::Json;
    let failure: Arc<Mutex<Option<io::Error>>> = Arc::default();
    let failed = Arc::clone(&failure);
    let seen = Arc::new(Mutex::new(false));
    let any = Arc::clone(&seen);
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout());
    let sink = spe::Sink::new(args.packets, move |item| {
        *any.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_none() {
            let last = matches!(item, spe::Item::Summary(_));
            let written = write_item(&mut out, &item, json).and_then(|()| if last { out.flush() } else { Ok(()) });
            *failed = written.err();
        }
    });
    let options = ReadOptions {
        time: args.time.as_deref().map(time_range).transpose()?,
        cpus: args.cpu.as_deref().map(cpu_list).transpose()?,
        spe: spe::Options {
            modules: args.module.iter().map(|text| raw_module(text)).collect::<anyhow::Result<_>>()?,
            sink: Some(sink),
            ..spe::Options::default()
        },
        ..ReadOptions::default()
    };
    let profile = read_profile(path, &options, &Bar::new())?;
    super::output::warn(&profile.problems);
    if let Some(error) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error).context("standard output");
    }
    if !*seen.lock().unwrap_or_else(PoisonError::into_inner) {
        bail!("{}: no Arm SPE data in this recording", path.display());
    }
    Ok(())
}

fn write_item(out: &mut dyn Write, item: &spe::Item, json: bool) -> io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, item)?;
        return writeln!(out);
    }
    let value = serde_json::to_value(item)?;
    for (kind, fields) in value.as_object().into_iter().flatten() {
        write!(out, "{kind}")?;
        for (name, value) in fields.as_object().into_iter().flatten() {
            write!(out, "  {name} {}", plain(value))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A JSON value for people: lists by commas, texts without quotes.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(values) if values.is_empty() => "-".into(),
        serde_json::Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

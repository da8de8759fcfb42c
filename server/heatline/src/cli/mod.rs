//! The command line: one file per command. Each parses its options, calls the library crates and prints once.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command line is for")]

mod annotate;
mod diff;
mod dump;
mod dump_filter;
mod export;
mod freeze;
mod options;
mod output;
mod placed;
mod progress;
mod report;
mod resolve;
mod selected;
mod session;
mod similar;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// Exit status for wrong usage and for input that cannot be used at all.
const UNUSABLE: u8 = 2;

/// Costs of native sample profiles on the lines of your source.
#[derive(Parser, Debug)]
#[command(name = "heatline", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  perf record -g ./app                      record a profile into perf.data
  heatline report perf.data                 functions, hottest first
  heatline report perf.data --by line       lines, hottest first
  heatline annotate perf.data               the source text with costs beside the lines
  heatline diff                             perf.data.old against perf.data
  heatline dump app.spt                     what is in a file, record by record
  heatline freeze perf.data -o a.heatline   one file that opens anywhere, after any rebuild
  heatline export perf.data --to firefox -o a.json  for other viewers: pprof, speedscope, firefox, spt
  heatline resolve ./app 0x1139             function, file and line of an address
  heatline lsp                              the language server, for editors

A folder stands for the newest profile in it. Each command has more: heatline report --help";

#[derive(Subcommand, Debug)]
enum Command {
    /// The language server on standard input and output: heatline lsp
    Lsp {
        /// Accepted for editors that insist on it; there is no other transport.
        #[arg(long)]
        stdio: bool,
        /// Accepted for editors that insist on it; the session ends with standard input.
        #[arg(long = "clientProcessId", hide = true)]
        client_process_id: Option<u32>,
    },
    /// Costs as a table, hottest first: heatline report perf.data --by line
    Report(report::ReportArgs),
    /// The source text with costs beside the lines: heatline annotate perf.data
    Annotate(annotate::AnnotateArgs),
    /// Recordings compared with a baseline: heatline diff perf.data.old perf.data
    Diff(Box<diff::DiffArgs>),
    /// What is in a profile, record by record: heatline dump app.spt
    Dump(dump::DumpArgs),
    /// One file that opens anywhere, after any rebuild: heatline freeze perf.data -o before.heatline
    Freeze(freeze::FreezeArgs),
    /// A profile for other viewers: heatline export perf.data --to speedscope -o app.json
    Export(export::ExportArgs),
    /// Addresses to functions, files and lines: heatline resolve ./app 0x1139
    Resolve(resolve::ResolveArgs),
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let words = dump::respell(std::env::args_os().collect());
    let parsed = command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let help = !error.use_stderr();
            // A closed pipe behind --help is no reason to fail.
            let _ = error.print();
            if let Some(path) = path_as_command(&error) {
                output::say(format_args!("to see a profile: heatline report {path}"));
            }
            return if help { ExitCode::SUCCESS } else { ExitCode::from(UNUSABLE) };
        }
    };
    start_log(if matches!(cli.command, Command::Lsp { .. }) { "warn,heatline=info" } else { "error" });
    let outcome = match cli.command {
        Command::Lsp { .. } => return crate::lsp::run(),
        Command::Report(args) => report::run(args).map(done),
        Command::Annotate(args) => annotate::run(args).map(done),
        Command::Diff(args) => diff::run(*args),
        Command::Dump(args) => dump::run(args).map(done),
        Command::Freeze(args) => freeze::run(args).map(done),
        Command::Export(args) => export::run(args).map(done),
        Command::Resolve(args) => resolve::run(args).map(done),
    };
    match outcome {
        Ok(status) => status,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format_args!("{}", output::one_line(&error)));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// The command line, whose help names only options that mean something for their command. The others are refused with a
/// reason.
fn command() -> clap::Command {
    let hide = |command: clap::Command, options: &[&'static str]| {
        options.iter().fold(command, |command, option| command.mut_arg(option, |argument| argument.hide(true)))
    };
    let records = "Only the records of Arm SPE of this group, by its name as recorded";
    Cli::command()
        .mut_subcommand("freeze", |freeze| {
            hide(freeze, freeze::MEANINGLESS).mut_arg("event", |event| event.help(records).long_help(records))
        })
        .mut_subcommand("export", |export| hide(export, export::MEANINGLESS))
}

/// The path that somebody named in the place of a command.
fn path_as_command(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if Path::new(word).exists() => Some(word.clone()),
        _ => None,
    }
}

fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

/// The log goes to standard error; `HEATLINE_LOG` chooses how much (`warn`, `heatline=debug`, …).
fn start_log(usually: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HEATLINE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usually));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}

//! The options that every command takes which reads a profile.

use super::output::say;
use crate::binaries::SearchPaths;
use crate::load::LoadOptions;
use crate::rust_source;
use crate::settings::{self, Settings};
use crate::sources::SourcePaths;
use crate::time_choice::TimeChoice;
use crate::which_profile::{choice_sentence, profile_at};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use heatline_annotate::Filter;
use heatline_readers::{ReadOptions, spe, spt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How output is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Aligned, for people.
    Table,
    /// One document, for programs.
    Json,
    /// Comma-separated values with a header line.
    Csv,
}

/// What percentages are a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Base {
    /// The whole event, whatever the filters leave.
    Absolute,
    /// What the filters leave.
    Relative,
}

/// Which end of a recorded stack comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Order {
    /// The innermost frame.
    LeafFirst,
    /// The outermost frame.
    RootFirst,
}

/// Which profiles to read, which part of them, and how to write.
#[derive(Args, Debug, Clone)]
pub struct ProfileArgs {
    /// Profiles, or folders that hold one ("-": standard input). Several are added up.
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,
    /// What to read of them.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Only how much of the weight reached a line, by module, and where was looked.
    #[arg(long)]
    pub coverage: bool,
    /// How to write.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// Which part of a profile is wanted, and where its binaries and sources are: the same for every command.
#[derive(Args, Debug, Clone)]
pub struct ReadingArgs {
    /// The metric, by its id (see `heatline report --by event`).
    #[arg(long, value_name = "ID")]
    pub metric: Option<String>,
    /// The event, by its name as recorded; the same as --metric for plain events.
    #[arg(long, value_name = "NAME", conflicts_with = "metric")]
    pub event: Option<String>,
    /// Look up recorded paths of binaries below this folder first.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Also look for binaries and separate debug files here. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
    /// Symbol stores for PDBs, in the syntax of _NT_SYMBOL_PATH; only folders are looked into.
    #[arg(long, value_name = "PATH")]
    pub symbol_path: Option<String>,
    /// Which end of an SPT file's stacks comes first, where the binaries do not show it.
    #[arg(long, value_enum, value_name = "ORDER", default_value = "leaf-first")]
    pub stack_order: Order,
    /// Sources recorded below FROM are below TO here. May be repeated.
    #[arg(long, value_name = "FROM=TO", value_parser = prefix_pair)]
    pub source_map: Vec<(String, String)>,
    /// Only threads of these names (comma-separated).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub comm: Vec<String>,
    /// Only rows of these modules, by path or base name (comma-separated).
    #[arg(long, value_name = "MODULES", value_delimiter = ',')]
    pub dso: Vec<String>,
    /// Only rows of this function, with or without parameters. May be repeated.
    #[arg(long, value_name = "FUNCTION")]
    pub symbol: Vec<String>,
    /// Only samples of these processes (comma-separated).
    #[arg(long, value_name = "PIDS", value_delimiter = ',', value_parser = number::<i32>)]
    pub pid: Vec<i32>,
    /// Only samples of these threads (comma-separated).
    #[arg(long, value_name = "TIDS", value_delimiter = ',', value_parser = number::<i32>)]
    pub tid: Vec<i32>,
    /// Only samples taken on these processors: 0,2-3.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Only samples between two times of the recording's clock, in seconds, either may be missing: 12.5,13; or of a part
    /// of the recording: 10%-20%, 10%/2 (the second tenth), several with commas between.
    #[arg(long, value_name = "A,B")]
    pub time: Option<String>,
    /// What percentages are a share of when --comm, --dso, --symbol, --pid or --tid filter.
    #[arg(long, value_enum, value_name = "BASE", default_value = "absolute")]
    pub percentage: Base,
    /// The physical view: an inlined function's cost belongs to the function that holds its code, on the call's line.
    #[arg(long)]
    pub no_inline: bool,
    /// At most so many rows (default: 50 for people, all for programs).
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    pub limit: Option<usize>,
    /// The binary at BASE, for raw buffers that hold no mappings. May be repeated.
    #[arg(long, value_name = "PATH@BASE")]
    pub module: Vec<String>,
    /// Use a binary although its build id differs from the recorded one.
    #[arg(long)]
    pub allow_mismatch: bool,
    /// Names of kernel functions: a copy of /proc/kallsyms of the recorded machine, made by root before it restarts.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
}

impl ProfileArgs {
    /// The part that loading needs.
    ///
    /// # Errors
    /// If a list or time is not understood.
    pub fn load_options(&self, settings: &Settings) -> anyhow::Result<LoadOptions> {
        let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let mut source_map = self.reading.source_map.clone();
        source_map.extend(settings.source_map.iter().cloned());
        let mut debug_dirs = self.reading.debug_dir.clone();
        debug_dirs.extend(settings.search.debug_dirs.iter().cloned());
        Ok(LoadOptions {
            paths: self.profiles.clone(),
            read: ReadOptions {
                cpus: self.reading.cpu.as_deref().map(cpu_list).transpose()?,
                spt: spt::Options {
                    stack_order: match self.reading.stack_order {
                        Order::LeafFirst => spt::StackOrder::LeafFirst,
                        Order::RootFirst => spt::StackOrder::RootFirst,
                    },
                    ..spt::Options::default()
                },
                spe: spe::Options {
                    modules: self.reading.module.iter().map(|text| raw_module(text)).collect::<anyhow::Result<_>>()?,
                    groups: self.spe_groups()?,
                    ..spe::Options::default()
                },
                ..ReadOptions::default()
            },
            search: SearchPaths {
                symfs: self.reading.symfs.clone().or_else(|| settings.search.symfs.clone()),
                debug_dirs,
                symbol_path: self.reading.symbol_path.clone().or_else(|| settings.search.symbol_path.clone()),
                beside: Vec::new(),
                home: std::env::home_dir(),
                allow_mismatch: self.reading.allow_mismatch,
                kallsyms: self.reading.kallsyms.clone(),
            },
            sources: SourcePaths {
                map: source_map,
                roots: vec![current.clone()],
                beside: vec![current],
                toolchains: rust_source::toolchains(),
            },
            time: self.reading.time.as_deref().map(TimeChoice::parse).transpose()?,
            symbols_only: false,
            without_callers: false,
        })
    }

    /// The files that are read, the newest profile in the place of a folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn inputs(&self) -> anyhow::Result<Vec<PathBuf>> {
        self.profiles.iter().map(|path| profile_at(path)).collect()
    }

    /// Of folders that were named and hold several profiles: which one is read.
    pub fn choices(&self) -> Vec<String> {
        self.profiles.iter().filter_map(|path| choice_sentence(path)).collect()
    }

    /// What `heatline.toml` says: that of the current folder, else that beside the first profile. What it holds that
    /// cannot be used is warned of.
    pub fn settings(&self) -> Settings {
        let current = Path::new(".");
        let mut settings = Settings::default();
        let beside = self.profiles.first().map(|path| if path.is_dir() { path.as_path() } else { folder_of(path) });
        for root in [Some(current), beside].into_iter().flatten() {
            match settings::read_file(root) {
                Ok(None) => continue,
                Ok(Some(layer)) => {
                    settings.apply(&layer).iter().for_each(|text| say(format_args!("warning: heatline.toml: {text}")));
                }
                Err(text) => say(format_args!("warning: {text}")),
            }
            break;
        }
        settings
    }

    /// An SPE group named as an event is a filter of records.
    fn spe_groups(&self) -> anyhow::Result<Vec<spe::Group>> {
        Ok(self.reading.event.as_deref().and_then(spe::Group::from_name).into_iter().collect())
    }

    /// Refuses the options that choose what is shown, where nothing is; `why` says what to do instead.
    ///
    /// # Errors
    /// If one is there.
    pub fn refuse_views(&self, why: &str) -> anyhow::Result<()> {
        let given = [
            ("--metric", self.reading.metric.is_some()),
            ("--event", self.event_name().is_some()),
            ("--comm", !self.reading.comm.is_empty()),
            ("--dso", !self.reading.dso.is_empty()),
            ("--symbol", !self.reading.symbol.is_empty()),
            ("--pid", !self.reading.pid.is_empty()),
            ("--tid", !self.reading.tid.is_empty()),
            ("--percentage", self.reading.percentage != Base::Absolute),
            ("--no-inline", self.reading.no_inline),
            ("--limit", self.reading.limit.is_some()),
            ("--coverage", self.coverage),
            ("--format", self.format != Format::Table),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => bail!("{option}: {why}"),
            None => Ok(()),
        }
    }

    /// Whether only some records of Arm SPE are wanted.
    pub fn filters_spe_records(&self) -> bool {
        self.reading.event.as_deref().and_then(spe::Group::from_name).is_some()
    }

    /// The event to show: one that was named and is no group of SPE records.
    pub fn event_name(&self) -> Option<&String> {
        self.reading.event.as_ref().filter(|name| spe::Group::from_name(name).is_none())
    }

    /// The part that chooses samples and rows.
    pub fn filter(&self) -> Filter {
        Filter {
            comms: self.reading.comm.clone(),
            pids: self.reading.pid.clone(),
            tids: self.reading.tid.clone(),
            modules: self.reading.dso.clone(),
            symbols: self.reading.symbol.clone(),
            relative: self.reading.percentage == Base::Relative,
        }
    }

    /// The most rows to write.
    pub fn most_rows(&self) -> usize {
        self.reading.limit.unwrap_or(if self.format == Format::Table { 50 } else { usize::MAX })
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `PATH@BASE` with a hexadecimal base.
pub fn raw_module(text: &str) -> anyhow::Result<spe::RawModule> {
    let expected = || format!("--module {text}: expected PATH@BASE such as ./app@0x400000");
    let (path, base) = text.rsplit_once('@').with_context(expected)?;
    let base = u64::from_str_radix(base.trim_start_matches("0x"), 16).with_context(expected)?;
    Ok(spe::RawModule { path: path.into(), base })
}

/// A whole number.
pub fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| "expected a whole number such as 1234".to_owned())
}

/// A share in percent, or a difference of shares in percentage points.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse().ok().filter(|share: &f64| share.is_finite() && *share >= 0.0);
    share.ok_or_else(|| "expected a number of at least 0 such as 0.5".to_owned())
}

/// `FROM=TO`.
pub fn prefix_pair(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once('=').ok_or("expected FROM=TO")?;
    if from.is_empty() { Err("FROM is empty".into()) } else { Ok((from.into(), to.into())) }
}

/// `0,2-3` as a list.
pub fn cpu_list(text: &str) -> anyhow::Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let parse =
            |text: &str| text.trim().parse().with_context(|| format!("--cpu {text}: expected numbers such as 0,2-3"));
        let (first, last): (u32, u32) = (parse(first)?, parse(last)?);
        if last < first || last - first > 65_536 {
            bail!("--cpu {part}: expected an ascending range of processors");
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_finite_and_what_is_none_is_told_what_is_expected() {
        assert_eq!((share("0"), share("2.5"), number("-1")), (Ok(0.0), Ok(2.5), Ok(-1)));
        for text in ["nan", "NaN", "-nan", "inf", "-inf", "infinity", "1e400", "-1e400", "-1", "", "0,5"] {
            assert!(share(text).unwrap_err().starts_with("expected a number of at least 0"), "{text}");
        }
        assert!(number::<i32>("abc").unwrap_err().starts_with("expected a whole number"));
        assert!(number::<usize>("-1").is_err() && number::<i32>("99999999999").is_err());
    }

    #[test]
    fn lists_are_exact() {
        assert_eq!(cpu_list("0,2-4").unwrap(), [0, 2, 3, 4]);
        assert!(cpu_list("4-2").is_err() && cpu_list("x").is_err());
    }
}

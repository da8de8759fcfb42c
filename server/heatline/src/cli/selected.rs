//! What the filters of a command leave of a profile, in words: for headings, and where one selects nothing.

use super::options::{Base, ProfileArgs, ReadingArgs};
use super::output::say;
use super::progress::Bar;
use super::similar::did_you_mean;
use crate::load::Loaded;
use crate::time_choice;
use heatline_annotate::text::samples;
use heatline_annotate::{By, CostTable, Filter, Selection, without_parameters};
use heatline_profile::{Profile, Thread, ThreadId};
use heatline_readers::spe;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// So many of what there is are named where something is not there.
const MOST_NAMED: usize = 5;

/// The filters of a command, and what they leave.
#[derive(Debug)]
pub struct Selected {
    /// Those that shrink the whole that shares are of, as they were given.
    of_whole: Vec<String>,
    /// Those that choose samples of it.
    of_samples: Vec<String>,
    /// Those that choose rows.
    of_rows: Vec<String>,
    relative: bool,
}

impl Selected {
    /// What the options say.
    pub fn of(reading: &ReadingArgs) -> Self {
        fn list<T: ToString>(option: &str, values: &[T]) -> Option<String> {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            (!values.is_empty()).then(|| format!("{option} {}", values.join(",")))
        }
        let one = |option: &str, value: &Option<String>| value.as_ref().map(|value| format!("{option} {value}"));
        let records = reading.event.clone().filter(|name| spe::Group::from_name(name).is_some());
        let whole = [one("--time", &reading.time), one("--cpu", &reading.cpu), one("--event", &records)];
        let threads = [list("--comm", &reading.comm), list("--pid", &reading.pid), list("--tid", &reading.tid)];
        Selected {
            of_whole: whole.into_iter().flatten().collect(),
            of_samples: threads.into_iter().flatten().collect(),
            of_rows: [list("--dso", &reading.dso), list("--symbol", &reading.symbol)].into_iter().flatten().collect(),
            relative: reading.percentage == Base::Relative,
        }
    }

    /// What is shown, for a heading: `only samples of --comm first: 812 samples`. `None` if it is everything.
    pub fn sentence(&self, table: &CostTable) -> Option<String> {
        let mut parts = Vec::new();
        let options: Vec<&str> = self.of_whole.iter().chain(&self.of_samples).map(String::as_str).collect();
        if !options.is_empty() {
            let options = options.join(" ");
            parts.push(match table.is_measured() {
                true => format!("what {options} selects"),
                false => format!("samples of {options}: {}", samples(table.selected().samples)),
            });
        }
        if !self.of_rows.is_empty() {
            parts.push(format!("rows of {}", self.of_rows.join(" ")));
        }
        (!parts.is_empty()).then(|| format!("only {}", parts.join("; only ")))
    }

    /// What percentages are of, where `all` is the word for what was recorded.
    pub fn base(&self, all: &str) -> String {
        let is_filtered = self.of_samples.len() + self.of_rows.len() > 0;
        match self.of_whole.join(" ") {
            _ if self.relative => "what the filters leave".to_owned(),
            whole if !whole.is_empty() => format!("all {all} of {whole}"),
            _ if is_filtered => format!("all {all}, selected or not"),
            _ => format!("all {all}"),
        }
    }
}

/// Warns of filters that name what there is not, and says what there is.
pub fn warn_of_nothing(args: &ProfileArgs, loaded: &Loaded, table: &CostTable) {
    let profile = loaded.model.profile();
    if profile.rows.is_empty() {
        return outside(args, profile).into_iter().for_each(|text| say(format_args!("warning: {text}")));
    }
    let reading = &args.reading;
    let texts = unknown_threads(reading, profile).into_iter().chain(unknown_places(reading, table));
    texts.for_each(|text| say(format_args!("warning: {text}")));
}

/// What to say where the filters of threads leave no sample.
pub fn no_such_thread(reading: &ReadingArgs, profile: &Profile) -> String {
    match unknown_threads(reading, profile) {
        texts if texts.is_empty() => "--comm, --pid, --tid: no sample is of such a thread".to_owned(),
        texts => texts.join("; "),
    }
}

/// What to say where no sample is of the times and processors that are asked for.
fn outside(args: &ProfileArgs, profile: &Profile) -> Option<String> {
    let inputs = args.inputs().unwrap_or_default();
    match (&args.reading.time, &args.reading.cpu) {
        (Some(time), _) => Some(outside_of_time(time, &inputs, profile.recording.span)),
        (None, Some(cpu)) => Some(format!("--cpu {cpu}: no sample was taken there")),
        (None, None) => None,
    }
}

/// What to say where nothing is of the times that are asked for. `known` is the time of what cannot be read twice.
pub fn outside_of_time(time: &str, inputs: &[PathBuf], known: Option<(u64, u64)>) -> String {
    let span = |path: &PathBuf| match path.as_os_str() == "-" {
        true => known,
        false => time_choice::span(path, &Bar::new()).ok(),
    };
    let spans: Vec<String> = inputs.iter().take(MOST_NAMED).filter_map(span).map(span_text).collect();
    let recorded = if spans.is_empty() { String::new() } else { format!("; the recording is {}", spans.join(" and ")) };
    format!("--time {time}: nothing was recorded then{recorded}; parts can be named too, as in --time 10%-20%")
}

/// In seconds as `--time` takes them, rounded so that both ends are inside.
fn span_text((first, last): (u64, u64)) -> String {
    let seconds = |microseconds: u64| format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    format!("from {} to {} s", seconds(first / 1000), seconds(last.div_ceil(1000)))
}

/// What to say of threads and processes that have no samples.
fn unknown_threads(reading: &ReadingArgs, profile: &Profile) -> Vec<String> {
    let with_samples: BTreeSet<ThreadId> = profile.rows.iter().filter_map(|row| row.thread).collect();
    let threads: Vec<&Thread> = with_samples.into_iter().map(|id| profile.thread(id)).collect();
    let mut texts = Vec::new();
    for comm in reading.comm.iter().filter(|comm| !threads.iter().any(|thread| thread.comm == **comm)) {
        let names: BTreeSet<&str> = threads.iter().map(|thread| thread.comm.as_str()).collect();
        texts.push(format!("--comm {comm}: no thread with samples has this name{}", known(comm, names)));
    }
    let mut numbers = |option: &str, what: &str, wanted: &[i32], number: fn(&Thread) -> i32| {
        for wanted in wanted.iter().filter(|wanted| !threads.iter().any(|thread| number(thread) == **wanted)) {
            let names: BTreeSet<String> =
                threads.iter().map(|thread| format!("{} ({})", number(thread), thread.comm)).collect();
            let known = known(&wanted.to_string(), names.iter().map(String::as_str));
            texts.push(format!("{option} {wanted}: no {what} with samples has this number{known}"));
        }
    };
    numbers("--pid", "process", &reading.pid, |thread| thread.pid);
    numbers("--tid", "thread", &reading.tid, |thread| thread.tid);
    texts
}

/// What to say of modules and functions that have no cost.
fn unknown_places(reading: &ReadingArgs, table: &CostTable) -> Vec<String> {
    if reading.dso.is_empty() && reading.symbol.is_empty() {
        return Vec::new();
    }
    let model = table.model();
    let everything = Selection { filter: Filter::default(), ..table.selection().clone() };
    let everything = CostTable::new(Arc::clone(model), everything);
    let rows_with = |filter: Filter| {
        let selection = Selection { filter, ..table.selection().clone() };
        CostTable::new(Arc::clone(model), selection).rows(By::Function).len()
    };
    let mut texts = Vec::new();
    for dso in &reading.dso {
        if rows_with(Filter { modules: vec![dso.clone()], ..Filter::default() }) == 0 {
            let rows = everything.rows(By::Module);
            let names = rows.iter().filter_map(|row| Some(model.profile().module(row.module?).base_name()));
            texts.push(format!("--dso {dso}: no module with cost has this name or path{}", known(dso, names)));
        }
    }
    for symbol in &reading.symbol {
        if rows_with(Filter { symbols: vec![symbol.clone()], ..Filter::default() }) == 0 {
            let rows = everything.rows(By::Function);
            let names = rows.iter().filter_map(|row| Some(without_parameters(&model.function(row.function?).name)));
            let known = known(symbol, names);
            texts.push(format!("--symbol {symbol}: no function with cost has this name{known}"));
        }
    }
    texts
}

/// What there is instead: what was meant, most likely, and the first few of all.
fn known<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut seen = BTreeSet::new();
    let names: Vec<&str> = names.into_iter().filter(|name| seen.insert(*name)).collect();
    let meant = did_you_mean(wanted, names.iter().copied());
    let first = names.get(..MOST_NAMED).unwrap_or(&names).join(", ");
    match names.len() {
        0 => "; there is none".to_owned(),
        1 => format!("; there is only {first}"),
        count if count <= MOST_NAMED => format!("{meant}; there are {first}"),
        count => format!("{meant}; there are {count}, the first: {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        reading: ReadingArgs,
    }

    #[track_caller]
    fn check(options: &str, base: &str) {
        let options = ["report"].into_iter().chain(options.split_whitespace());
        assert_eq!(Selected::of(&Options::parse_from(options).reading).base("samples"), base);
    }

    #[test]
    fn what_shares_are_of_follows_the_filters() {
        check("", "all samples");
        check("--time 10%-20% --tid 5", "all samples of --time 10%-20%");
        check("--cpu 0,2 --dso a", "all samples of --cpu 0,2");
        check("--event cycles", "all samples");
        check(&format!("--event {}", spe::Group::L1dMiss.name()), "all samples of --event l1d-miss");
        check("--pid 5,6", "all samples, selected or not");
        check("--time 1,2 --comm a --percentage relative", "what the filters leave");
    }
}

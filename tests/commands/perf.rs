//! `perf report` as tables of numbers.

use super::lab::perf;
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of one event: the values of the asked fields, by event name.
pub type Rows = BTreeMap<String, Vec<Vec<String>>>;

/// Between two fields; in no name.
const SEPARATOR: &str = "\u{1f}";

/// Runs `perf report` with these options and fields, and splits its rows.
pub fn table(profile: &Path, options: &[&str], fields: &str) -> Rows {
    let mut command = perf();
    command.args(["report", "-f", "--stdio", "--no-group", "--no-inline", "-g", "none", "-t", SEPARATOR, "-F", fields]);
    command.arg("-i").arg(profile).args(options).current_dir(profile.parent().unwrap());
    let output = command.output().expect("perf is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut rows = Rows::new();
    let mut event = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some((_, rest)) = line.split_once(" of event") {
            event = rest.trim_start_matches('s').trim_matches([' ', '\'']).to_owned();
            rows.entry(event.clone()).or_default();
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            let cells: Vec<String> = line.split(SEPARATOR).map(|cell| cell.trim().to_owned()).collect();
            // A column that a filter makes constant is left out.
            let asked = fields.split(',').count();
            let kept =
                if options.iter().any(|option| ["--comm", "--dso"].contains(option)) { asked - 1 } else { asked };
            assert_eq!(cells.len(), kept, "{line:?}");
            rows.get_mut(&event).expect("a row belongs to an event").push(cells);
        }
    }
    rows
}

/// The base name of a module as both sides print it.
pub fn module(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

/// `[.] name` or `[k] name` as a name; an address without a symbol is none.
pub fn symbol(text: &str) -> Option<String> {
    let name = text.get(4..).unwrap_or(text).trim();
    (!name.starts_with("0x") && !name.is_empty() && name != "[unknown]").then(|| name.to_owned())
}

/// A sample: its weight, and its frames as module and function, innermost first.
pub type Chain = (u64, Vec<(String, Option<String>)>);

/// The chains of `perf script` as it looks addresses up for `perf report`: without inlined frames.
pub fn chains(profile: &Path) -> Vec<Chain> {
    let mut command = perf();
    command.args(["script", "-f", "--no-inline", "-F", "period,ip,sym,dso", "-i"]).arg(profile);
    let output = command.output().expect("perf is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut chains: Vec<Chain> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let text = line.trim();
        if let Ok(weight) = text.parse() {
            chains.push((weight, Vec::new()));
        } else if let Some((frame, dso)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
            let name = frame.split_once(' ').map(|(_, name)| name.to_owned()).filter(|name| name != "[unknown]");
            chains.last_mut().expect("a sample").1.push((module(dso), name));
        }
    }
    chains
}

//! The settings, one struct for the language server and the command line.
//!
//! Values come in layers, later ones winning: the defaults, `heatline.toml` at the workspace root, the client's
//! settings, the command line. A layer is a JSON object with any part of the keys, nested or with dots. What is unknown
//! or of a wrong type is reported and left out, so one bad line never takes the others with it.

use crate::files;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The name of the file at the workspace root.
pub const FILE_NAME: &str = "heatline.toml";

/// A settings file longer than this is not read.
const LONGEST_FILE: u64 = 1 << 20;

/// All settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// `profiles`: paths or globs, relative to the workspace root.
    pub profiles: Vec<String>,
    /// `baseline`: the profile compared against.
    pub baseline: Option<String>,
    /// `metric`: the metric shown first.
    pub metric: Option<String>,
    /// `search`: where binaries and debug information are looked for.
    pub search: Search,
    /// `sourceMap`: prefixes of recorded source paths and what stands for them here, tried in this order.
    pub source_map: Vec<(String, String)>,
    /// `hints`
    pub hints: Hints,
    /// `lenses`
    pub lenses: Lenses,
    /// `diff.threshold`: a smaller difference to the baseline is not shown, in percentage points.
    pub diff_threshold: f64,
    /// `heat`
    pub heat: Heat,
    /// `inline`: whether inlined functions count as functions.
    pub inline: bool,
}

/// Where binaries and debug information are looked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Search {
    /// `search.symfs`: a folder under which the recorded paths are looked up first.
    pub symfs: Option<PathBuf>,
    /// `search.debugDirs`: folders with separated debug information.
    pub debug_dirs: Vec<PathBuf>,
    /// `search.symbolPath`: in the syntax of `_NT_SYMBOL_PATH`.
    pub symbol_path: Option<String>,
    /// `search.debuginfod`: servers to ask; not asked yet.
    pub debuginfod: Vec<String>,
}

/// Hints at the ends of lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Hints {
    /// `hints.enable`
    pub enable: bool,
    /// `hints.threshold`: a line with a smaller share gets none, in percent.
    pub threshold: f64,
    /// `hints.inclusive`: whether inclusive cost is shown.
    pub inclusive: bool,
}

/// Lenses above functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Lenses {
    /// `lenses.enable`
    pub enable: bool,
    /// `lenses.threshold`: a function with a smaller share gets none, in percent.
    pub threshold: f64,
}

/// Colours beside the lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heat {
    /// `heat.enable`
    pub enable: bool,
    /// `heat.scope`
    pub scope: HeatScope,
}

/// What the hottest colour stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeatScope {
    /// The hottest line of the profile.
    Profile,
    /// The hottest line of the file.
    File,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profiles: ["perf.data", "*.spt", "*.heatline", "uftrace.data"].map(String::from).into(),
            baseline: None,
            metric: None,
            search: Search::default(),
            source_map: Vec::new(),
            hints: Hints { enable: true, threshold: 0.5, inclusive: true },
            lenses: Lenses { enable: true, threshold: 0.1 },
            diff_threshold: 0.5,
            heat: Heat { enable: true, scope: HeatScope::Profile },
            inline: true,
        }
    }
}

/// Keys of the section `heatline` that are the editors' own.
const OF_CLIENTS: [&str; 2] = ["server", "trace"];

impl Settings {
    /// Lays a layer over these settings and returns what could not be used, one message each.
    pub fn apply(&mut self, layer: &Value) -> Vec<String> {
        let mut complaints = Vec::new();
        self.apply_below("", layer, &mut complaints);
        complaints
    }

    fn apply_below(&mut self, prefix: &str, value: &Value, complaints: &mut Vec<String>) {
        let Value::Object(object) = value else {
            if !value.is_null() {
                let name = if prefix.is_empty() { "the settings" } else { prefix };
                complaints.push(format!("{name}: expected an object, found {value}"));
            }
            return;
        };
        for (key, value) in object {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match self.set(&key, value) {
                Ok(()) => {}
                Err(Refusal::Section) => self.apply_below(&key, value, complaints),
                Err(Refusal::Unknown) => complaints.push(format!("{key}: there is no such setting")),
                Err(Refusal::Type(expected)) => complaints.push(format!("{key}: expected {expected}, found {value}")),
            }
        }
    }

    /// Sets one key; null leaves it as it is.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), Refusal> {
        match key {
            "profiles" => put(&mut self.profiles, strings(value)),
            "baseline" => put(&mut self.baseline, string(value)),
            "metric" => put(&mut self.metric, string(value)),
            "search.symfs" => put(&mut self.search.symfs, string(value).map(|path| path.map(|p| p.map(PathBuf::from)))),
            "search.debugDirs" => {
                let paths = strings(value).map(|list| list.map(|l| l.into_iter().map(PathBuf::from).collect()));
                put(&mut self.search.debug_dirs, paths)
            }
            "search.symbolPath" => put(&mut self.search.symbol_path, string(value)),
            "search.debuginfod" => put(&mut self.search.debuginfod, strings(value)),
            "sourceMap" => put(&mut self.source_map, pairs(value)),
            "hints.enable" => put(&mut self.hints.enable, boolean(value)),
            "hints.threshold" => put(&mut self.hints.threshold, share(value)),
            "hints.inclusive" => put(&mut self.hints.inclusive, boolean(value)),
            "lenses.enable" => put(&mut self.lenses.enable, boolean(value)),
            "lenses.threshold" => put(&mut self.lenses.threshold, share(value)),
            "diff.threshold" => put(&mut self.diff_threshold, share(value)),
            "heat.enable" => put(&mut self.heat.enable, boolean(value)),
            "heat.scope" => put(&mut self.heat.scope, scope(value)),
            "inline" => put(&mut self.inline, boolean(value)),
            "search" | "hints" | "lenses" | "diff" | "heat" => Err(Refusal::Section),
            _ if OF_CLIENTS.contains(&key.split('.').next().unwrap_or(key)) => Ok(()),
            _ => Err(Refusal::Unknown),
        }
    }
}

/// Reads the settings file of a workspace: `Ok(None)` if there is none.
///
/// # Errors
/// One line that names the file, if it cannot be read or is no TOML.
pub fn read_file(root: &Path) -> Result<Option<Value>, String> {
    let path = root.join(FILE_NAME);
    let say = |error: &dyn std::fmt::Display| format!("{}: {}", path.display(), error.to_string().trim_end());
    let bytes = match files::read(&path, LONGEST_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| say(&error))?,
    };
    let text = String::from_utf8(bytes).map_err(|error| say(&error))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| say(&error.message()))?;
    Ok(Some(as_json(toml::Value::Table(table))))
}

/// The same in JSON; what that has no value for, such as numbers that are not finite, as text.
fn as_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Float(number) => number.to_string().into(),
        toml::Value::Boolean(is) => is.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(as_json).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(key, value)| (key, as_json(value))).collect())
        }
    }
}

/// Why a key was not set.
enum Refusal {
    /// It is a section; its keys are to be set.
    Section,
    Unknown,
    Type(&'static str),
}

/// A value of the right type, or null, or what was expected.
type Typed<T> = Result<Option<T>, &'static str>;

fn put<T>(place: &mut T, value: Typed<T>) -> Result<(), Refusal> {
    if let Some(value) = value.map_err(Refusal::Type)? {
        *place = value;
    }
    Ok(())
}

fn boolean(value: &Value) -> Typed<bool> {
    typed(value, Value::as_bool, "true or false")
}

/// A percentage or a number of percentage points.
fn share(value: &Value) -> Typed<f64> {
    typed(value, |value| value.as_f64().filter(|n| n.is_finite() && *n >= 0.0), "a number of at least 0")
}

/// Text; an empty one means that there is none.
fn string(value: &Value) -> Typed<Option<String>> {
    let text = |value: &Value| value.as_str().map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
    typed(value, text, "a text")
}

fn strings(value: &Value) -> Typed<Vec<String>> {
    let list = |value: &Value| match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(list) => list.iter().map(|item| item.as_str().map(String::from)).collect(),
        _ => None,
    };
    typed(value, list, "a list of texts")
}

/// Pairs: an object, a list of lists of two, or a list of texts `FROM=TO`.
fn pairs(value: &Value) -> Typed<Vec<(String, String)>> {
    let pair = |item: &Value| match item {
        Value::String(text) => text.split_once('=').map(|(from, to)| (from.into(), to.into())),
        Value::Array(list) => match &list[..] {
            [Value::String(from), Value::String(to)] => Some((from.clone(), to.clone())),
            _ => None,
        },
        _ => None,
    };
    let all = |value: &Value| match value {
        Value::Object(map) => map.iter().map(|(from, to)| Some((from.clone(), to.as_str()?.to_owned()))).collect(),
        Value::Array(list) => list.iter().map(pair).collect(),
        _ => None,
    };
    typed(value, all, "pairs of prefixes, as an object or as texts FROM=TO")
}

fn scope(value: &Value) -> Typed<HeatScope> {
    let scope = |value: &Value| match value.as_str()? {
        "profile" => Some(HeatScope::Profile),
        "file" => Some(HeatScope::File),
        _ => None,
    };
    typed(value, scope, "\"profile\" or \"file\"")
}

fn typed<T>(value: &Value, read: impl Fn(&Value) -> Option<T>, expected: &'static str) -> Typed<T> {
    if value.is_null() { Ok(None) } else { read(value).map(Some).ok_or(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(layer: &Value, change: impl Fn(&mut Settings), complaints: &[&str]) {
        let (mut settings, mut expected) = (Settings::default(), Settings::default());
        change(&mut expected);
        assert_eq!(settings.apply(layer), complaints);
        assert_eq!(settings, expected);
    }

    /// All keys with their defaults; taking the struct apart makes this fail to build where a setting is forgotten.
    fn defaults() -> Value {
        let Settings { profiles, baseline, metric, search, source_map, hints, lenses, diff_threshold, heat, inline } =
            Settings::default();
        let Search { symfs, debug_dirs, symbol_path, debuginfod } = search;
        json!({
            "profiles": profiles, "baseline": baseline, "metric": metric, "inline": inline, "sourceMap": source_map,
            "search.symfs": symfs, "search.debugDirs": debug_dirs, "search.symbolPath": symbol_path,
            "search.debuginfod": debuginfod, "diff.threshold": diff_threshold,
            "hints.enable": hints.enable, "hints.threshold": hints.threshold, "hints.inclusive": hints.inclusive,
            "lenses.enable": lenses.enable, "lenses.threshold": lenses.threshold,
            "heat.enable": heat.enable,
            "heat.scope": match heat.scope { HeatScope::Profile => "profile", HeatScope::File => "file" },
        })
    }

    #[test]
    fn vs_code_declares_the_same_keys_and_defaults() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode/package.json");
        let manifest: Value = serde_json::from_str(&std::fs::read_to_string(manifest).unwrap()).unwrap();
        let declared = manifest["contributes"]["configuration"]["properties"].as_object().unwrap();
        let own = |key: &str| OF_CLIENTS.contains(&key.split('.').next().unwrap_or(key));
        let declared: serde_json::Map<String, Value> = declared
            .iter()
            .map(|(key, declared)| (key.strip_prefix("heatline.").unwrap().to_owned(), declared["default"].clone()))
            .filter(|(key, _)| !own(key))
            .collect();
        assert_eq!(Value::Object(declared), defaults());
    }

    #[test]
    fn every_key_is_read() {
        let all = json!({
            "profiles": ["a", "b*"], "baseline": "old", "metric": "cycles", "inline": false,
            "search": {"symfs": "/s", "debugDirs": ["/d"], "symbolPath": "srv*", "debuginfod": ["https://x"]},
            "sourceMap": {"/a": "/b"}, "hints": {"enable": false, "threshold": 1, "inclusive": false},
            "lenses": {"enable": false, "threshold": 2.5}, "diff": {"threshold": 3},
            "heat": {"enable": false, "scope": "file"},
        });
        let expected = Settings {
            profiles: vec!["a".into(), "b*".into()],
            baseline: Some("old".into()),
            metric: Some("cycles".into()),
            search: Search {
                symfs: Some("/s".into()),
                debug_dirs: vec!["/d".into()],
                symbol_path: Some("srv*".into()),
                debuginfod: vec!["https://x".into()],
            },
            source_map: vec![("/a".into(), "/b".into())],
            hints: Hints { enable: false, threshold: 1.0, inclusive: false },
            lenses: Lenses { enable: false, threshold: 2.5 },
            diff_threshold: 3.0,
            heat: Heat { enable: false, scope: HeatScope::File },
            inline: false,
        };
        check(&all, |settings| *settings = expected.clone(), &[]);
    }

    #[test]
    fn what_cannot_be_used_is_named_and_the_rest_is_used() {
        let layer = json!({"hints": {"treshold": 1, "threshold": "x", "inclusive": false}, "diff": 3, "heat": null});
        let complaints = [
            "diff: expected an object, found 3",
            "hints.threshold: expected a number of at least 0, found \"x\"",
            "hints.treshold: there is no such setting",
        ];
        check(&layer, |settings| settings.hints.inclusive = false, &complaints);
        check(&json!([1]), |_| {}, &["the settings: expected an object, found [1]"]);
        check(
            &json!({"lenses": {"threshold": -1}}),
            |_| {},
            &["lenses.threshold: expected a number of at least 0, found -1"],
        );
    }

    #[test]
    fn numbers_of_a_file_that_are_not_finite_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for (written, found) in [("nan", "NaN"), ("inf", "inf"), ("-inf", "-inf")] {
            std::fs::write(folder.path().join(FILE_NAME), format!("[diff]\nthreshold = {written}\n")).unwrap();
            let layer = read_file(folder.path()).unwrap().unwrap();
            let complaint = format!("diff.threshold: expected a number of at least 0, found \"{found}\"");
            check(&layer, |_| {}, &[&complaint]);
        }
        std::fs::write(folder.path().join(FILE_NAME), "diff.threshold = 1e400").unwrap();
        assert!(read_file(folder.path()).unwrap_err().contains(FILE_NAME));
        std::fs::write(folder.path().join(FILE_NAME), "diff.threshold = 2\nhints = {threshold = 1.5}").unwrap();
        let layer = read_file(folder.path()).unwrap().unwrap();
        assert_eq!(layer, json!({"diff": {"threshold": 2}, "hints": {"threshold": 1.5}}));
    }

    #[test]
    fn keys_may_be_dotted_and_null_leaves_them_as_they_are() {
        check(&json!({"hints.threshold": 7}), |settings| settings.hints.threshold = 7.0, &[]);
        check(&json!({"hints": {"threshold": null}, "metric": ""}), |_| {}, &[]);
        check(&Value::Null, |_| {}, &[]);
    }

    #[test]
    fn the_keys_of_editors_are_no_mistakes() {
        check(&json!({"server": {"path": "x"}, "trace.server": "off"}), |_| {}, &[]);
    }

    #[test]
    fn source_prefixes_come_in_three_forms_and_in_order() {
        let expected = |s: &mut Settings| s.source_map = vec![("/b".into(), "/c".into()), ("/a".into(), "/d".into())];
        check(&json!({"sourceMap": ["/b=/c", "/a=/d"]}), expected, &[]);
        check(&json!({"sourceMap": [["/b", "/c"], ["/a", "/d"]]}), expected, &[]);
        check(
            &json!({"sourceMap": ["/b"]}),
            |_| {},
            &["sourceMap: expected pairs of prefixes, as an object or as texts FROM=TO, found [\"/b\"]"],
        );
    }
}

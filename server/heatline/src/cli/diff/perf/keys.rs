//! The sort keys of perf: what rows are told apart by, and their columns.

use super::entry::Entry;
use heatline_annotate::compare::SortKey;
use std::cmp::Ordering;

/// Digits of an address; columns of what has no symbol are as wide.
const ADDRESS_WIDTH: usize = 16;

/// Which keys, and how much of them is shown.
#[derive(Clone, Debug)]
pub struct Keys {
    /// By what rows are told apart.
    pub all: Vec<SortKey>,
    /// Of these the ones that have a column.
    pub shown: Vec<SortKey>,
    /// Modules by their whole paths, symbols with addresses.
    pub verbose: bool,
}

/// Names of a symbol list as perf takes them: what can be read as a hexadecimal number is one.
pub fn names(list: &[String]) -> Vec<String> {
    let is_number = |name: &String| {
        let digits = name.strip_prefix("0x").unwrap_or(name);
        !digits.is_empty() && digits.len() <= ADDRESS_WIDTH && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    list.iter().filter(|name| !is_number(name)).cloned().collect()
}

/// What makes two rows one: the values of the keys that are asked for.
pub type Identity = [Option<String>; 6];

impl Keys {
    /// What makes a row one with another.
    pub fn identity(&self, entry: &Entry) -> Identity {
        let has = |key: SortKey| self.all.contains(&key);
        [
            has(SortKey::Pid).then(|| entry.tid.to_string()),
            has(SortKey::Comm).then(|| entry.comm.clone()),
            has(SortKey::Dso).then(|| self.module(entry).to_owned()),
            entry.function.clone().filter(|_| has(SortKey::Symbol)),
            entry.cpu.filter(|_| has(SortKey::Cpu)).map(|cpu| cpu.to_string()),
            has(SortKey::Srcline).then(|| entry.srcline.clone()),
        ]
    }

    /// Which of two rows comes first.
    pub fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        let compare = |key: &SortKey| match key {
            SortKey::Pid => a.tid.cmp(&b.tid),
            SortKey::Comm => a.comm.cmp(&b.comm),
            SortKey::Dso => self.module(a).cmp(self.module(b)),
            // What has no symbol comes last.
            SortKey::Symbol => {
                a.function.is_none().cmp(&b.function.is_none()).then_with(|| a.function.cmp(&b.function))
            }
            SortKey::Cpu => a.cpu.cmp(&b.cpu),
            SortKey::Parent => Ordering::Equal,
            SortKey::Srcline => a.srcline.cmp(&b.srcline),
        };
        self.all.iter().map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    pub fn module<'a>(&self, entry: &'a Entry) -> &'a str {
        if self.verbose { &entry.path } else { &entry.module }
    }

    /// The title of a column.
    pub fn title(key: SortKey) -> &'static str {
        match key {
            SortKey::Pid => "    Pid:Command",
            SortKey::Comm => "Command",
            SortKey::Dso => "Shared Object",
            SortKey::Symbol => "Symbol",
            SortKey::Cpu => "CPU",
            SortKey::Parent => "Parent symbol",
            SortKey::Srcline => "Source:Line",
        }
    }

    /// The width of a column over these rows. `wide` is whether columns are aligned and no module is chosen.
    pub fn width<'a>(&self, key: SortKey, entries: impl Iterator<Item = &'a Entry>, wide: bool) -> usize {
        let mut width = Self::title(key).chars().count();
        for entry in entries {
            width = width.max(match key {
                SortKey::Pid => entry.comm.chars().count() + 8,
                SortKey::Comm => entry.comm.chars().count(),
                SortKey::Dso if entry.function.is_none() && wide => {
                    self.module(entry).chars().count().max(ADDRESS_WIDTH)
                }
                SortKey::Dso => self.module(entry).chars().count(),
                SortKey::Symbol => match &entry.function {
                    Some(name) if self.verbose => name.chars().count() + 4 + ADDRESS_WIDTH + 5,
                    Some(name) => name.chars().count() + 4,
                    None => ADDRESS_WIDTH + 6,
                },
                SortKey::Srcline => entry.srcline.chars().count(),
                SortKey::Cpu | SortKey::Parent => 0,
            });
        }
        width
    }

    /// A cell, as wide as perf makes it by itself.
    pub fn cell(&self, key: SortKey, entry: &Entry, width: usize) -> String {
        match key {
            SortKey::Pid => {
                let width = width.max(7) - 8;
                format!("{:7}:{:width$.width$}", entry.tid, entry.comm)
            }
            SortKey::Comm => format!("{:width$.width$}", entry.comm),
            SortKey::Dso => format!("{:width$.width$}", self.module(entry)),
            SortKey::Symbol => self.symbol(entry),
            SortKey::Cpu => entry.cpu.map_or_else(|| "-001".to_owned(), |cpu| format!("{cpu:03}")),
            SortKey::Parent => format!("{:width$}", "[other]"),
            SortKey::Srcline => entry.srcline.clone(),
        }
    }

    fn symbol(&self, entry: &Entry) -> String {
        let place = if self.verbose { format!("{:<#18x} d ", entry.address) } else { String::new() };
        match &entry.function {
            Some(name) => format!("{place}[{}] {name}", entry.level),
            None => format!("{place}[{}] {:#018x}", entry.level, entry.address),
        }
    }
}

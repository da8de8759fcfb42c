//! Names of kernel functions, from a copy of `/proc/kallsyms` of the recorded machine.

use crate::files;
use anyhow::{Context, bail};
use heatline_annotate::ModuleSymbols;
use heatline_profile::ModuleAddress;
use heatline_symbols::{Frame, Function, FunctionId, Resolution};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

/// The functions of a kernel and its modules, by where they begin.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// Ascending.
    starts: Vec<(u64, String)>,
}

impl KernelSymbols {
    /// Reads a list.
    ///
    /// # Errors
    /// If it cannot be read, or holds no addresses, as that of a user without rights does.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let bytes = files::read_named(path, files::LONGEST_LIST).with_context(name)?;
        let symbols = Self::parse(&String::from_utf8_lossy(&bytes));
        if symbols.starts.is_empty() {
            bail!("{}: no addresses of kernel functions; copy /proc/kallsyms as root", path.display());
        }
        Ok(symbols)
    }

    fn parse(text: &str) -> Self {
        let mut symbols: Vec<(u64, &str, &str)> = text.lines().filter_map(code_symbol).collect();
        // Of several names of one place the one that perf chooses: not weak, global, with fewer underscores in front,
        // longer.
        symbols.sort_by_key(|(address, kind, name)| {
            let underscores = name.len() - name.trim_start_matches('_').len();
            let is_local = kind.bytes().all(|byte| byte.is_ascii_lowercase());
            (*address, kind.eq_ignore_ascii_case("w"), is_local, underscores, Reverse(name.len()))
        });
        symbols.dedup_by_key(|(address, ..)| *address);
        let starts = symbols.into_iter().map(|(address, _, name)| (address, name.to_owned())).collect();
        KernelSymbols { starts }
    }

    /// The functions that addresses of the running kernel are in.
    pub fn look_up(&self, addresses: &[ModuleAddress]) -> ModuleSymbols {
        let mut functions: Vec<Function> = Vec::new();
        let mut known: HashMap<usize, FunctionId> = HashMap::new();
        let mut frames = |address: &ModuleAddress| -> Vec<Frame> {
            let Some(at) = self.starts.partition_point(|(start, _)| *start <= address.0).checked_sub(1) else {
                return Vec::new();
            };
            let function = known.get(&at).copied().or_else(|| {
                let id = FunctionId::new(functions.len())?;
                functions.push(Function {
                    name: self.starts[at].1.as_str().into(),
                    linkage_name: None,
                    file: None,
                    line: None,
                    from_symbol_table: true,
                });
                known.insert(at, id);
                Some(id)
            });
            vec![Frame { function, file: None, line: None, column: None, inlined: false }]
        };
        let of_address: Vec<Vec<Frame>> = addresses.iter().map(&mut frames).collect();
        ModuleSymbols::Resolved(Resolution::from_frames(Vec::new(), functions, &of_address))
    }
}

/// Address, kind and name of a line, if it is of code whose address is known.
fn code_symbol(line: &str) -> Option<(u64, &str, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
    let kind = words.next()?;
    let is_code = ["t", "w"].iter().any(|code| kind.eq_ignore_ascii_case(code));
    Some((address, kind, words.next().filter(|_| is_code)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_named_after_the_function_that_begins_before_it() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 T do_work\nffffffff81000100 t an_alias\nffffffff81000100 T __do_work\n\
                    ffffffff81000180 d data\nffffffffc0000000 t helper\t[driver]\n0000000000000000 T hidden\nnonsense\n";
        let symbols = KernelSymbols::parse(text);
        let names: Vec<&str> = symbols.starts.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["_stext", "do_work", "helper"]);
        let addresses = [0xffff_ffff_8100_01ff, 0xffff_ffff_c000_0001, 0x1000].map(ModuleAddress);
        let ModuleSymbols::Resolved(resolution) = symbols.look_up(&addresses) else { panic!("resolved") };
        assert_eq!((resolution.len(), resolution.functions.len()), (3, 2));
        assert_eq!(&*resolution.functions[0].name, "do_work");
    }
}

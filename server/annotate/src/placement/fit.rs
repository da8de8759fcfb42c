//! Whether a text can be the one that a line table is of.

use super::lines::Lines;
use std::num::NonZeroU32;

/// How many of some lines a text has code on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fit {
    /// Lines that exist and are neither blank nor comment only.
    pub fitting: usize,
    /// All lines that were asked for.
    pub of: usize,
}

impl Fit {
    /// Whether every line fits.
    pub fn is_whole(self) -> bool {
        self.fitting == self.of
    }

    /// The share of lines that fit, 0 to 1.
    pub fn share(self) -> f64 {
        if self.of == 0 { 1.0 } else { self.fitting as f64 / self.of as f64 }
    }
}

/// How comments of a language begin and end.
struct Comments {
    line: &'static [&'static str],
    block: Option<(&'static str, &'static str)>,
}

/// By the ending of a file's name.
fn comments_of(path: &str) -> Comments {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "py" | "rb" | "sh" | "pl" | "jl" | "nim" | "r" => Comments { line: &["#"], block: None },
        "s" | "S" | "asm" => Comments { line: &["#", ";", "//"], block: Some(("/*", "*/")) },
        "f90" | "F90" | "f95" | "f03" | "f08" => Comments { line: &["!"], block: None },
        "ads" | "adb" | "hs" | "lua" => Comments { line: &["--"], block: None },
        "ml" | "mli" | "pas" => Comments { line: &["//"], block: Some(("(*", "*)")) },
        _ => Comments { line: &["//"], block: Some(("/*", "*/")) },
    }
}

/// Looks whether lines of a text have code. Comments are told by the ending of `path`.
pub fn fit(text: &str, path: &str, lines: impl IntoIterator<Item = NonZeroU32>) -> Fit {
    let text = Lines::of(text);
    let comments = comments_of(path);
    let mut in_block = false;
    let has_code: Vec<bool> = text.all().iter().map(|line| comments.has_code(line, &mut in_block)).collect();
    let mut fit = Fit { fitting: 0, of: 0 };
    for line in lines {
        fit.of += 1;
        fit.fitting += usize::from(has_code.get(line.get() as usize - 1) == Some(&true));
    }
    fit
}

impl Comments {
    /// Whether anything of a line is no comment. What looks like a comment in a string is taken for one: then there is
    /// the string's beginning, which is code.
    fn has_code(&self, line: &str, in_block: &mut bool) -> bool {
        let mut rest = line.trim();
        let mut code = false;
        while !rest.is_empty() {
            if let Some((_, close)) = self.block.filter(|_| *in_block) {
                let Some(at) = rest.find(close) else { return code };
                *in_block = false;
                rest = rest[at + close.len()..].trim_start();
                continue;
            }
            if self.line.iter().any(|open| rest.starts_with(open)) {
                return code;
            }
            match self.block.and_then(|(open, _)| rest.find(open).map(|at| (at, open.len()))) {
                Some((at, length)) => {
                    let before = &rest[..at];
                    let ends = self.line.iter().any(|open| before.contains(open));
                    code |= !before.trim().is_empty();
                    if ends || before.contains('"') {
                        return true;
                    }
                    *in_block = true;
                    rest = rest[at + length..].trim_start();
                }
                None => return true,
            }
        }
        code
    }
}

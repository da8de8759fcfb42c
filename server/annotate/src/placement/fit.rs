//! Whether a text can be the one that a line table is of.

use super::lines::Lines;
use std::collections::HashSet;
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

/// A function and the line that debug information says it is declared on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Declaration {
    /// From 1.
    pub line: NonZeroU32,
    /// The name without scope, parameters and arguments of templates.
    pub name: String,
}

impl Declaration {
    /// By a function's full name; `None` if the source does not spell it, as for operators and lambdas.
    pub fn new(name: &str, line: NonZeroU32) -> Option<Declaration> {
        let mut depth = 0usize;
        let mut plain = String::new();
        for c in name.chars() {
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                '(' if depth == 0 && !plain.is_empty() => break,
                c if depth == 0 => plain.push(c),
                _ => {}
            }
        }
        let last = plain.trim().rsplit([':', ' ', '*', '&']).next()?.trim_start_matches('~');
        let is_word = !last.is_empty() && !last.starts_with("operator") && last.chars().all(is_word);
        is_word.then(|| Declaration { line, name: last.to_owned() })
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Of the functions whose names a text spells anywhere, so many have theirs on the line of their declaration. Names that
/// a macro puts together are spelled elsewhere, so a few may be missing from a text that is right.
pub fn declared(text: &str, declarations: &[Declaration]) -> Fit {
    let text = Lines::of(text);
    let spelled: HashSet<&str> = text.all().iter().flat_map(|line| line.split(|c| !is_word(c))).collect();
    let mut fit = Fit { fitting: 0, of: 0 };
    for Declaration { line, name } in
        declarations.iter().filter(|declaration| spelled.contains(declaration.name.as_str()))
    {
        let line = text.all().get(line.get() as usize - 1);
        fit.of += 1;
        fit.fitting += usize::from(line.is_some_and(|line| line.split(|c| !is_word(c)).any(|word| word == name)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_have_the_name_that_sources_spell() {
        let name = |full: &str| Declaration::new(full, NonZeroU32::MIN).map(|declaration| declaration.name);
        let names = [
            ("main", Some("main")),
            ("ns::Type<int, (ns::Kind)2>::walk(std::vector<int> const&) const", Some("walk")),
            ("void sorter<int>(int*, int*)", Some("sorter")),
            ("Pointer<Value>* make<Value>()", Some("make")),
            ("Pool::~Pool()", Some("Pool")),
            ("<app::Session as app::Visit>::block", Some("block")),
            ("app::run::{closure#0}", None),
            ("Call::operator()(int) const", None),
            ("(anonymous namespace)::walk(int)", Some("walk")),
        ];
        for (full, expected) in names {
            assert_eq!(name(full).as_deref(), expected, "{full}");
        }
    }

    #[test]
    fn a_text_that_was_edited_above_a_function_does_not_declare_it_where_it_was() {
        let at = |line| NonZeroU32::new(line).unwrap();
        let declarations: Vec<Declaration> = [("alpha(int)", 1), ("beta(int)", 4), ("made_by_macro()", 3)]
            .into_iter()
            .filter_map(|(name, line)| Declaration::new(name, at(line)))
            .collect();
        let text = "int alpha(int n) {\n    return beta(n);\n}\nint beta(int n) {\n";
        assert_eq!(declared(text, &declarations), Fit { fitting: 2, of: 2 });
        assert_eq!(declared(&text.replace("}\n", "}\n\n"), &declarations), Fit { fitting: 1, of: 2 });
    }
}

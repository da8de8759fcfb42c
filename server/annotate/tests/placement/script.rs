//! Scripts of edits that remember where each line went.

/// Numbers that look random, the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number below another.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// What people do to sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Writes new lines, one or some at a place.
    Insert,
    /// Copies lines of the file to another place of it.
    Copy,
    /// Removes lines, one or some at a place.
    Delete,
    /// Moves a block, from blank line to blank line.
    Move,
    /// Gives lines another indentation.
    Indent,
    /// Splits lines behind a comma or brace.
    Split,
    /// Renames a name everywhere.
    Rename,
    /// Edits words of lines.
    Change,
    /// Some of everything.
    Mixed,
}

/// All of them.
pub const KINDS: [Kind; 9] = [
    Kind::Insert,
    Kind::Copy,
    Kind::Delete,
    Kind::Move,
    Kind::Indent,
    Kind::Split,
    Kind::Rename,
    Kind::Change,
    Kind::Mixed,
];

/// Where a line went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truth {
    /// The line now, from 0.
    pub line: u32,
    /// Whether its text is as it was, indentation aside.
    pub same: bool,
}

/// A line and where it came from.
#[derive(Clone)]
struct Line {
    text: String,
    from: Option<u32>,
    same: bool,
}

/// A text after a script.
pub struct Edited {
    pub text: String,
    truth: Vec<Option<Truth>>,
}

impl Edited {
    /// Where a line of the text before, from 0, is; `None` if it was removed.
    pub fn truth(&self, line: u32) -> Option<Truth> {
        self.truth[line as usize]
    }
}

/// Edits a text at several places.
pub fn run(text: &str, kind: Kind, random: &mut Random) -> Edited {
    let mut lines: Vec<Line> =
        (0..).zip(text.split('\n')).map(|(at, text)| Line { text: text.into(), from: Some(at), same: true }).collect();
    let count = lines.len();
    for _ in 0..2 + random.below(6) {
        let kind = if kind == Kind::Mixed { KINDS[random.below(KINDS.len() - 1)] } else { kind };
        apply(kind, &mut lines, random);
    }
    let mut truth = vec![None; count];
    for (now, line) in (0..).zip(&lines) {
        if let Some(from) = line.from {
            truth[from as usize] = Some(Truth { line: now, same: line.same });
        }
    }
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    Edited { text: texts.join("\n"), truth }
}

fn apply(kind: Kind, lines: &mut Vec<Line>, random: &mut Random) {
    match kind {
        Kind::Insert => {
            let at = random.below(lines.len());
            let new: Vec<Line> = (0..1 + random.below(8)).map(|_| invented(random)).collect();
            lines.splice(at..at, new);
        }
        Kind::Copy => {
            let range = some_lines(lines, random, 12);
            let copy: Vec<Line> = lines[range].iter().map(|line| Line { from: None, ..line.clone() }).collect();
            let at = random.below(lines.len());
            lines.splice(at..at, copy);
        }
        Kind::Delete => {
            let range = some_lines(lines, random, 10);
            lines.drain(range);
        }
        Kind::Move => {
            let range = paragraph(lines, random);
            let block: Vec<Line> = lines.drain(range).collect();
            let at = paragraph(lines, random).start;
            lines.splice(at..at, block);
        }
        Kind::Indent => {
            let range = some_lines(lines, random, 40);
            for line in lines[range].iter_mut().filter(|line| !line.text.trim().is_empty()) {
                line.text.insert_str(0, "    ");
            }
        }
        Kind::Split => split(lines, random),
        Kind::Rename => rename(lines, random),
        Kind::Change | Kind::Mixed => change(lines, random),
    }
}

fn some_lines(lines: &[Line], random: &mut Random, most: usize) -> std::ops::Range<usize> {
    let start = random.below(lines.len());
    start..(start + 1 + random.below(most)).min(lines.len())
}

/// What stands between two blank lines.
fn paragraph(lines: &[Line], random: &mut Random) -> std::ops::Range<usize> {
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.text.trim().is_empty());
    let middle = random.below(lines.len());
    let start = (0..middle).rev().find(|at| is_blank(*at)).map_or(0, |at| at + 1);
    let end = (middle..lines.len()).find(|at| is_blank(*at)).unwrap_or(lines.len());
    start..end.max(start)
}

fn word(random: &mut Random) -> String {
    let syllables = ["ra", "ne", "ti", "lo", "su", "ka", "mi", "do"];
    (0..3).map(|_| syllables[random.below(syllables.len())]).collect()
}

fn invented(random: &mut Random) -> Line {
    let (a, b) = (word(random), word(random));
    let text = match random.below(5) {
        0 => String::new(),
        1 => format!("    // {a} {b}"),
        2 => "    }".to_owned(),
        3 => format!("    if {a} > {} {{", random.below(90)),
        _ => format!("    let {a} = {b}({});", random.below(900)),
    };
    Line { text, from: None, same: true }
}

/// Splits a line in two; what stands in front of the split keeps its origin.
fn split(lines: &mut Vec<Line>, random: &mut Random) {
    for _ in 0..20 {
        let at = random.below(lines.len());
        let text = lines[at].text.clone();
        let Some(comma) = text.find(", ").filter(|comma| 2 * comma > text.trim_end().len()) else { continue };
        lines[at].text.truncate(comma + 1);
        lines[at].same = false;
        lines.insert(at + 1, Line { text: format!("        {}", &text[comma + 2..]), from: None, same: true });
        return;
    }
}

fn names(text: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_of_name(c)).filter(|name| name.len() > 4 && name.starts_with(char::is_alphabetic)).collect()
}

fn rename(lines: &mut [Line], random: &mut Random) {
    let from = random.below(lines.len());
    let Some(old) = lines[from..].iter().find_map(|line| names(&line.text).first().map(|name| (*name).to_owned()))
    else {
        return;
    };
    let new = word(random);
    for line in lines.iter_mut().filter(|line| line.text.contains(&old)) {
        line.text = line.text.replace(&old, &new);
        line.same = false;
    }
}

fn change(lines: &mut [Line], random: &mut Random) {
    for _ in 0..20 {
        let at = random.below(lines.len());
        let names = names(&lines[at].text);
        if names.len() < 3 {
            continue;
        }
        let name = names[random.below(names.len())].to_owned();
        lines[at].text = lines[at].text.replacen(&name, &word(random), 1);
        lines[at].same = false;
        return;
    }
}

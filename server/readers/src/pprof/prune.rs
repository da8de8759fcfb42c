//! `drop_frames` and `keep_frames`: functions that the recorder does not want to be seen, with all that they called.

use super::PprofError;
use regex::Regex;

/// A pattern that needs more than this to be matched is not used.
const LARGEST_PATTERN: usize = 4 << 20;

/// What of a location stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// All of it.
    Kept,
    /// Its outer frames, from this one on; what it called does not.
    Cut(usize),
    /// Nothing, nor what it called.
    Dropped,
}

/// The two patterns.
#[derive(Debug)]
pub(super) struct Pruning {
    drop: Regex,
    keep: Option<Regex>,
}

impl Pruning {
    /// `None` where nothing is to be dropped.
    pub fn new(drop: &str, keep: &str) -> Result<Option<Self>, PprofError> {
        if drop.is_empty() {
            return Ok(None);
        }
        let keep = if keep.is_empty() { None } else { Some(whole("keep_frames", keep)?) };
        Ok(Some(Pruning { drop: whole("drop_frames", drop)?, keep }))
    }

    fn is_unwanted(&self, function: &str) -> bool {
        let name = without_arguments(function);
        self.drop.is_match(name) && !self.keep.as_ref().is_some_and(|keep| keep.is_match(name))
    }

    /// What becomes of a location with these functions, innermost first.
    pub fn fate<'a>(&self, functions: impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator) -> Fate {
        let count = functions.len();
        match functions.enumerate().rev().find(|(_, name)| !name.is_empty() && self.is_unwanted(name)) {
            None => Fate::Kept,
            Some((at, _)) if at + 1 == count => Fate::Dropped,
            Some((at, _)) => Fate::Cut(at + 1),
        }
    }
}

/// How many of the innermost frames of a stack go. Unwanted functions outside all others stay: they are all there is.
pub(super) fn pruned(stack: impl DoubleEndedIterator<Item = Fate> + ExactSizeIterator) -> usize {
    let mut inside_wanted = false;
    for (at, fate) in stack.enumerate().rev() {
        match fate {
            Fate::Kept => inside_wanted = true,
            Fate::Dropped if inside_wanted => return at + 1,
            Fate::Cut(_) if inside_wanted => return at,
            _ => {}
        }
    }
    0
}

fn whole(field: &'static str, pattern: &str) -> Result<Regex, PprofError> {
    let built = regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(LARGEST_PATTERN).build();
    built.map_err(|error| PprofError::Pattern { field, why: error.to_string().replace('\n', " ") })
}

/// `a::b` of `a::b(int)`; parentheses that belong to a name stay.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let mut from = 0;
    while let Some(at) = name[from..].find('(').map(|at| from + at) {
        if name[at..].starts_with("(anonymous namespace)") {
            from = at + "(anonymous namespace)".len();
        } else if name[..at].ends_with("operator") && name[at..].starts_with("()") {
            from = at + 2;
        } else {
            return &name[..at];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruning() -> Pruning {
        Pruning::new("alloc|.*::hidden", "a::hidden").unwrap().unwrap()
    }

    #[test]
    fn names_match_as_a_whole_and_without_arguments() {
        let of = |name: &str| pruning().is_unwanted(name);
        assert!(of("alloc") && of("alloc(int)") && of(".alloc") && of("b::hidden()"));
        assert!(!of("allocate") && !of("a::hidden()"));
        assert_eq!(without_arguments("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
        assert_eq!(without_arguments("A::operator()(int) const"), "A::operator()");
    }

    #[test]
    fn a_location_loses_the_frames_inside_an_unwanted_one() {
        let of = |names: &[&'static str]| pruning().fate(names.iter().copied());
        assert_eq!(of(&["inner", "outer"]), Fate::Kept);
        assert_eq!(of(&["inner", "alloc"]), Fate::Dropped);
        assert_eq!(of(&["alloc", "outer"]), Fate::Cut(1));
    }

    #[test]
    fn a_stack_loses_what_an_unwanted_function_called() {
        let of = |fates: &[Fate]| pruned(fates.iter().copied());
        use Fate::{Cut, Dropped, Kept};
        assert_eq!(of(&[Kept, Dropped, Kept]), 2);
        assert_eq!(of(&[Kept, Cut(1), Kept]), 1);
        assert_eq!(of(&[Kept, Dropped]), 0, "nothing would be left");
        assert_eq!(of(&[Dropped, Kept, Dropped]), 1);
        assert_eq!(of(&[Kept, Kept]), 0);
    }

    #[test]
    fn what_is_no_pattern_or_too_large_is_refused() {
        for pattern in ["(", "(a{1000}){1000}"] {
            assert!(Pruning::new(pattern, "").is_err(), "{pattern}");
        }
    }
}

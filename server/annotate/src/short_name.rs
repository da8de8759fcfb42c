//! Names of functions, cut to the width of a column.

use std::borrow::Cow;

/// A function's name in at most `most` characters, for tables and lists. Of a name that is too long, the parameters are
/// left out first, then the arguments of templates and generics from the inside out, then the middle; `…` stands for
/// what is left out.
pub fn short_name(name: &str, most: usize) -> Cow<'_, str> {
    let fits = |name: &str| name.chars().count() <= most;
    if fits(name) {
        return name.into();
    }
    let deepest = groups(name).iter().map(|group| group.depth).max().unwrap_or(0);
    let steps = (0..=deepest).rev().flat_map(|depth| [('(', depth), ('<', depth)]);
    let parameters = std::iter::once(('(', 0));
    let mut short = name.to_owned();
    for (open, depth) in parameters.chain(steps) {
        short = without(&short, open, depth);
        if fits(&short) {
            return short.into();
        }
    }
    without_middle(&short, most).into()
}

/// A pair of brackets with something between.
struct Group {
    open: char,
    /// How many groups are around it.
    depth: usize,
    /// Where its inside begins and ends, in bytes.
    inside: std::ops::Range<usize>,
}

/// What is in round and angle brackets, but not the signs of operators, arrows and what is no list.
fn groups(name: &str) -> Vec<Group> {
    let mut found = Vec::new();
    let mut opened: Vec<(char, usize)> = Vec::new();
    let mut chars = name.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if name[..at].ends_with("operator") && is_word_end(&name[..at - "operator".len()]) {
            let signs = operator_signs(&name[at..]);
            while chars.next_if(|&(next, _)| next < at + signs).is_some() {}
            if signs > 0 {
                continue;
            }
        }
        match c {
            '(' | '<' => opened.push((c, at + 1)),
            '>' if name[..at].ends_with('-') => {}
            ')' | '>' if opened.last().is_some_and(|&(open, _)| (open == '(') == (c == ')')) => {
                if let Some((open, start)) = opened.pop() {
                    found.push(Group { open, depth: opened.len(), inside: start..at });
                }
            }
            _ => {}
        }
    }
    found
}

fn is_word_end(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// How many bytes of `after` belong to the name of an operator.
fn operator_signs(after: &str) -> usize {
    const BRACKETED: [&str; 10] = ["()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "->", "<=", ">="];
    let signs = BRACKETED.into_iter().chain(["<", ">"]);
    signs.into_iter().find(|sign| after.starts_with(sign)).map_or(0, str::len)
}

/// The name with `…` in all groups of a kind and depth. What stands in front of everything, as the type in
/// `<Type as Trait>::method`, and what names a scope, as `(anonymous namespace)`, stays.
fn without(name: &str, open: char, depth: usize) -> String {
    let mut short = String::with_capacity(name.len());
    let mut end = 0;
    let mut groups: Vec<Group> = groups(name);
    groups.retain(|group| group.open == open && group.depth == depth && !group.inside.is_empty());
    groups.sort_by_key(|group| group.inside.start);
    for Group { inside, .. } in groups {
        if inside.start > 1 && (open == '<' || !name[inside.end + 1..].starts_with("::")) {
            short += &name[end..inside.start];
            short.push('…');
            end = inside.end;
        }
    }
    short + &name[end..]
}

fn without_middle(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let half = most.saturating_sub(1) / 2;
    let head: String = name.chars().take(half).collect();
    let tail: String = name.chars().skip(count - half).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_stay() {
        assert_eq!(short_name("f(int)", 6), "f(int)");
        assert_eq!(short_name("größer", 6), "größer");
    }

    #[test]
    fn parameters_go_before_arguments_of_templates_and_these_from_the_inside_out() {
        let name = "std::map<int, std::vector<char> >::insert(std::pair<int const, std::vector<char> > const&)";
        assert_eq!(short_name(name, 60), "std::map<int, std::vector<char> >::insert(…)");
        assert_eq!(short_name(name, 41), "std::map<int, std::vector<…> >::insert(…)");
        assert_eq!(short_name(name, 40), "std::map<…>::insert(…)");
    }

    #[test]
    fn scopes_and_types_of_traits_stay() {
        let name = "(anonymous namespace)::walk(std::vector<int, std::allocator<int> >&)";
        assert_eq!(short_name(name, 40), "(anonymous namespace)::walk(…)");
        let name = "<app::Session<alloc::vec::Vec<u8>> as app::blocks::Visit>::block";
        assert_eq!(short_name(name, 50), "<app::Session<…> as app::blocks::Visit>::block");
        let name = "app::run::{closure#0}::<core::option::Option<fn(u32) -> u64>>";
        assert_eq!(short_name(name, 30), "app::run::{closure#0}::<…>");
    }

    #[test]
    fn operators_are_no_brackets() {
        let name = "bool ns::operator< <int>(ns::Long<int> const&, ns::Long<int> const&)";
        assert_eq!(short_name(name, 40), "bool ns::operator< <int>(…)");
        let name = "ns::Callable<int, int>::operator()(std::vector<int> const&) const";
        assert_eq!(short_name(name, 50), "ns::Callable<int, int>::operator()(…) const");
        assert_eq!(short_name("Pointer<Value>::operator->(int, int, int)", 30), "Pointer<Value>::operator->(…)");
    }

    #[test]
    fn what_is_still_too_long_loses_its_middle() {
        assert_eq!(short_name("a_very_long_name_without_brackets", 11), "a_ver…ckets");
        assert_eq!(short_name("f<g<h<", 3), "f…<");
    }
}

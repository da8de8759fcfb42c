//! Names that survive a rebuild: without what a compiler appends to the clones it makes.

/// Words behind a dot that mark a clone or a part of a function, not another function.
const CLONES: [&str; 9] = ["cold", "part", "constprop", "isra", "llvm", "lto_priv", "localalias", "clone", "__uniq"];

/// The name without suffixes of clones (`.cold`, `.part.0`, `.constprop.1`, `.llvm.123`, ` [clone .isra.0]`) and
/// without a Rust hash (`::h0123456789abcdef`).
pub fn without_clone_suffix(name: &str) -> &str {
    let mut name = name.trim_end();
    loop {
        let shorter = without_bracket(without_dotted(without_hash(name)));
        if shorter.len() == name.len() || shorter.is_empty() {
            return name;
        }
        name = shorter;
    }
}

/// ` [clone .part.0]`, as demanglers write it.
fn without_bracket(name: &str) -> &str {
    match name.ends_with(']').then(|| name.rfind(" [clone ")).flatten() {
        Some(at) => name[..at].trim_end(),
        None => name,
    }
}

/// `.part.0`, `.cold`: the word and what numbers follow it.
fn without_dotted(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let numbered = &name[stem.len()..];
    if !numbered.is_empty() && !numbered.starts_with('.') {
        return name;
    }
    match stem.rsplit_once('.') {
        Some((before, word)) if CLONES.contains(&word) => before,
        _ => name,
    }
}

fn without_hash(name: &str) -> &str {
    const MARK: &str = "::h";
    const DIGITS: usize = 16;
    let split = name.len().checked_sub(DIGITS).and_then(|at| name.split_at_checked(at));
    match split.and_then(|(front, hash)| Some((front.strip_suffix(MARK)?, hash))) {
        Some((before, hash)) if hash.bytes().all(|b| b.is_ascii_hexdigit()) => before,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_append_is_cut_and_nothing_else() {
        for (name, expected) in [
            ("work", "work"),
            ("work.cold", "work"),
            ("work.part.0.cold", "work"),
            ("work.constprop.12.isra.3", "work"),
            ("work.llvm.1234567890", "work"),
            ("work(int) [clone .part.0]", "work(int)"),
            ("work(int) [clone .constprop.0] [clone .cold]", "work(int)"),
            ("app::work::h0123456789abcdef", "app::work"),
            ("app::work::h0123456789abcdef.llvm.77", "app::work"),
            ("app::work::helper", "app::work::helper"),
            ("version.1", "version.1"),
            ("f2", "f2"),
            (".cold", ".cold"),
            ("libc.so.part", "libc.so"),
        ] {
            assert_eq!(without_clone_suffix(name), expected, "{name}");
        }
    }
}

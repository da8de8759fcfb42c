//! Linkage names as people write them. The one door to the demangling crates.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Substitutions can double a name at each step; beyond this many bytes the mangled name is shown.
const LONGEST_NAME: usize = 1 << 16;
/// The compiler itself shortens names of more than 4 KiB.
const LONGEST_MSVC_NAME: usize = 1 << 12;
/// What marks the stub through which a function of another module is called.
const STUB: &str = "@plt";
/// Nesting in a C++ name; real ones stay below 100. It bounds the stack.
const DEEPEST_NAME: u32 = 160;

/// The name for people: C++ with parameters and without a symbol's version, Rust without hash, anything else as it is.
pub(crate) fn demangle(linkage_name: &str) -> Cow<'_, str> {
    let name = linkage_name.strip_prefix('_').filter(|n| n.starts_with("_Z") || n.starts_with("_R"));
    let name = name.unwrap_or(linkage_name);
    if let Some(function) = name.strip_suffix(STUB).filter(|name| name.starts_with("_Z")) {
        return Cow::Owned(demangle(function).into_owned() + STUB);
    }
    let readable = if is_rust(name) {
        rust(name)
    } else if name.starts_with("_Z") {
        cpp(unversioned(name), cpp_demangle::DemangleOptions::default())
    } else if name.starts_with('?') {
        msvc(name)
    } else {
        None
    };
    readable.map_or(Cow::Borrowed(linkage_name), Cow::Owned)
}

/// The name as perf shows it: C++ without parameters and type of return, and without the version of the symbol, which
/// other names keep.
pub fn bare_name(linkage_name: &str) -> Cow<'_, str> {
    if !linkage_name.starts_with("_Z") || is_rust(linkage_name) {
        return demangle(linkage_name);
    }
    if let Some(function) = linkage_name.strip_suffix(STUB) {
        return Cow::Owned(bare_name(function).into_owned() + STUB);
    }
    let options = cpp_demangle::DemangleOptions::default().no_params().no_return_type();
    cpp(unversioned(linkage_name), options).map_or(Cow::Borrowed(linkage_name), |name| Cow::Owned(with_suffixes(name)))
}

/// Numbers of a type as perf writes them: `0u` and not `(unsigned int)0`.
fn with_suffixes(name: String) -> String {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    SUFFIXES.iter().filter(|(cast, _)| name.contains(cast)).fold(name.clone(), |name, (cast, suffix)| {
        let mut parts = name.split(cast);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let sign = usize::from(part.starts_with('-'));
            let digits = part.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
            match part.split_at_checked(sign + digits).filter(|_| digits > 0) {
                Some((number, rest)) => out.extend([number, suffix, rest]),
                None => out.extend([cast, part]),
            }
        }
        out
    })
}

/// The name without the version of its symbol, `@@LAB_2`.
fn unversioned(linkage_name: &str) -> &str {
    linkage_name.split('@').next().unwrap_or(linkage_name)
}

/// Rust's older scheme looks like C++; its last component is `h` and 16 hex digits.
fn is_rust(name: &str) -> bool {
    let hash_ends_it = |end: usize| {
        let hash = end.checked_sub(19).and_then(|start| name.get(start..end));
        hash.and_then(|h| h.strip_prefix("17h")).is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    name.starts_with("_R") || name.starts_with("_ZN") && name.rfind('E').is_some_and(hash_ends_it)
}

fn rust(name: &str) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Limited::default();
    write!(out, "{symbol:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str, options: cpp_demangle::DemangleOptions) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST_NAME);
    let options = options.recursion_limit(DEEPEST_NAME);
    let symbol = cpp_demangle::BorrowedSymbol::new_with_options(name.as_bytes(), &parse).ok()?;
    let mut out = Limited::default();
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// With parameters, without what its type says besides.
fn msvc(name: &str) -> Option<String> {
    use msvc_demangler::DemangleFlags as Flags;
    // Nesting is bounded by the length of the name, and so is the stack.
    if name.len() > LONGEST_MSVC_NAME {
        return None;
    }
    let flags = Flags::NO_ACCESS_SPECIFIERS
        | Flags::NO_FUNCTION_RETURNS
        | Flags::NO_MEMBER_TYPE
        | Flags::NO_MS_KEYWORDS
        | Flags::NO_THISTYPE
        | Flags::NO_CLASS_TYPE
        | Flags::SPACE_AFTER_COMMA;
    let demangled = std::panic::catch_unwind(|| msvc_demangler::demangle(name, flags).ok()).ok()??;
    (demangled.len() <= LONGEST_NAME).then_some(demangled)
}

/// Text that refuses to grow beyond [`LONGEST_NAME`].
#[derive(Default)]
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(linkage: &str, name: &str) {
        assert_eq!(demangle(linkage), name);
    }

    #[test]
    fn cpp_names_keep_their_parameters() {
        check("_Z3fibi", "fib(int)");
        check("_Z3fibi@@LAB_2", "fib(int)");
        check("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)");
    }

    #[test]
    fn bare_names_are_those_of_perf() {
        assert_eq!(bare_name("_Z3fibi"), "fib");
        assert_eq!(bare_name("_Z6sorterIiEvPT_S1_"), "sorter<int>");
        assert_eq!(bare_name("main"), "main");
        assert_eq!(bare_name("_ZN3lab3runEi@@LAB_2"), "lab::run");
        assert_eq!(
            (bare_name("_ZdlPv@plt"), demangle("_ZdlPv@plt")),
            ("operator delete@plt".into(), "operator delete(void*)@plt".into())
        );
        assert_eq!(bare_name("_Z4takeILj3ELln4ELb1EEvv"), "take<3u, -4l, true>");
        assert_eq!(bare_name("exp@@GLIBC_2.29"), "exp@@GLIBC_2.29");
        assert_eq!(bare_name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
    }

    #[test]
    fn rust_names_lose_their_hash() {
        check("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
        check("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.123", "core::fmt::Write::write_fmt");
        check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
    }

    #[test]
    fn cpp_names_are_not_taken_for_rust() {
        check("_ZN3foo3barEv", "foo::bar()");
    }

    #[test]
    fn other_names_stay() {
        check("main", "main");
        check("_Zbroken", "_Zbroken");
        check("", "");
    }

    #[test]
    fn names_that_explode_stay_mangled() {
        let mut name = "_Z1fSt4pairIiiE".to_owned();
        for i in 0..40 {
            let reference = if i == 0 { "S0_".to_owned() } else { format!("S{}_", i) };
            name.push_str(&format!("St4pairI{reference}{reference}E"));
        }
        assert!(demangle(&name).len() <= LONGEST_NAME.max(name.len()));
    }
}

//! Names that somebody may have meant.

/// So many names are proposed.
const MOST: usize = 3;

/// Names that are less alike are not meant.
const LEAST_ALIKE: f64 = 0.8;

/// How alike names are that differ by one letter, or by two that changed places.
const ONE_SLIP: f64 = 0.95;

/// The names most like the wanted one, the nearest first, parameters aside; none where nothing is like it.
pub fn similar<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &str| {
        let name = without_parameters(name).to_lowercase();
        let last = name.rsplit("::").next().unwrap_or(&name);
        match strsim::osa_distance(&wanted, last) {
            0 => 1.0,
            1 => ONE_SLIP,
            _ => strsim::jaro_winkler(&wanted, &name),
        }
    };
    let mut found: Vec<(f64, &str)> =
        names.map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness >= LEAST_ALIKE).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// `; did you mean a or b?`, or nothing.
pub fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let found = similar(wanted, names);
    if found.is_empty() { String::new() } else { format!("; did you mean {}?", found.join(" or ")) }
}

fn without_parameters(name: &str) -> &str {
    name.split('(').next().filter(|front| !front.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mistyped_is_found_and_nothing_else() {
        let names = ["walk_tree", "walk(Node*)", "lab::Pool::take(int)", "sum", "walk_tree"];
        let of = |wanted| similar(wanted, names.into_iter());
        assert_eq!(of("wlak"), ["walk(Node*)"]);
        assert_eq!(of("WALK_TREE"), ["walk_tree", "walk(Node*)"]);
        assert_eq!(of("take"), ["lab::Pool::take(int)"]);
        assert!(of("quicksort").is_empty());
        assert_eq!(did_you_mean("smu", names.into_iter()), "; did you mean sum?");
    }
}

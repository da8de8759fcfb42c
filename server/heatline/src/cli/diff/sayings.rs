//! What is to be said of several recordings: once, with the names of those that it is said of.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Texts with the files that they hold of, in the order in which they were first said.
#[derive(Default)]
pub struct Sayings {
    texts: Vec<(String, Vec<PathBuf>)>,
    known: HashMap<String, usize>,
}

impl Sayings {
    /// Says it of a file.
    pub fn say(&mut self, of: &Path, text: String) {
        let at = *self.known.entry(text.clone()).or_insert(self.texts.len());
        match self.texts.get_mut(at) {
            Some((_, files)) => files.push(of.to_owned()),
            None => self.texts.push((text, vec![of.to_owned()])),
        }
    }

    /// Each with whom it is said of, where there are `all` files.
    pub fn lines(self, all: usize) -> Vec<String> {
        let line = |(text, files): (String, Vec<PathBuf>)| {
            let first = files.first().map(|file| file.display().to_string()).unwrap_or_default();
            match files.len() {
                1 => format!("{first}: {text}"),
                2 if all == 2 => format!("both recordings: {text}"),
                of if of == all => format!("all {all} recordings: {text}"),
                of => format!("{first} and {} more: {text}", of - 1),
            }
        };
        self.texts.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_of_several_is_said_once() {
        let lines = |files: &[&str], all: usize| {
            let mut sayings = Sayings::default();
            files.iter().for_each(|file| sayings.say(Path::new(file), "cut".into()));
            sayings.lines(all)
        };
        assert_eq!(lines(&["a"], 2), ["a: cut"]);
        assert_eq!(lines(&["a", "b"], 2), ["both recordings: cut"]);
        assert_eq!(lines(&["a", "b", "c"], 3), ["all 3 recordings: cut"]);
        assert_eq!(lines(&["a", "b"], 3), ["a and 1 more: cut"]);
    }
}

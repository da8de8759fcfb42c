//! Placement of lines in edited texts, measured against edits whose truth is known.
#![allow(clippy::print_stdout, reason = "the figures are what the test is for")]

mod corpus;
mod script;

use corpus::Source;
use heatline_annotate::placement::{Comparison, Placement};
use script::{Edited, Random};
use std::num::NonZeroU32;

/// Scripts over each source.
const SCRIPTS: u64 = 3;

/// What was placed how, against the truth.
#[derive(Default, Debug)]
struct Figures {
    /// Lines whose text is as it was, indentation aside.
    unchanged: u32,
    /// Those of them that were found where they are, and said to be unchanged.
    unchanged_right: u32,
    /// Lines that were edited.
    changed: u32,
    /// Those of them that were found where they are, and said to be changed.
    changed_right: u32,
    /// Lines that were removed.
    removed: u32,
    /// Those of them that were said to be gone.
    removed_right: u32,
    /// Lines said to be exact or moved.
    sure: u32,
    /// Those of them that are elsewhere.
    sure_wrong: u32,
    /// Lines said to be exact that are elsewhere, and their text.
    exact_wrong: Vec<String>,
}

impl Figures {
    fn add(&mut self, base: &str, edited: &Edited) {
        let lines: Vec<&str> = base.split('\n').collect();
        let costed = (1..).zip(&lines).filter(|(_, line)| !line.trim().is_empty()).map(|(number, _)| number);
        let costed = costed.filter_map(NonZeroU32::new);
        let map = Comparison::new(base, &edited.text, costed).map;
        for (line, now, placement) in map.all() {
            let truth = edited.truth(line.get() - 1);
            let found = placement != Placement::Gone && truth.map(|truth| truth.line) == Some(now);
            let sure = matches!(placement, Placement::Exact | Placement::Moved);
            match truth {
                Some(truth) if truth.same => {
                    self.unchanged += 1;
                    self.unchanged_right += u32::from(found && sure);
                }
                Some(_) => {
                    self.changed += 1;
                    self.changed_right += u32::from(found && placement == Placement::Changed);
                }
                None => {
                    self.removed += 1;
                    self.removed_right += u32::from(placement == Placement::Gone);
                }
            }
            self.sure += u32::from(sure);
            self.sure_wrong += u32::from(sure && !found);
            if placement == Placement::Exact && !found {
                self.exact_wrong.push(lines[line.get() as usize - 1].trim().to_owned());
            }
        }
    }
}

impl Figures {
    fn merge(&mut self, other: Figures) {
        self.unchanged += other.unchanged;
        self.unchanged_right += other.unchanged_right;
        self.changed += other.changed;
        self.changed_right += other.changed_right;
        self.removed += other.removed;
        self.removed_right += other.removed_right;
        self.sure += other.sure;
        self.sure_wrong += other.sure_wrong;
        self.exact_wrong.extend(other.exact_wrong);
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * f64::from(part) / f64::from(whole) }
}

#[test]
fn lines_of_real_sources_are_found_after_scripts_of_edits() {
    let sources = corpus::sources();
    let mut all = Figures::default();
    for kind in script::KINDS {
        let mut figures = Figures::default();
        for (number, Source { text, .. }) in (0..).zip(&sources) {
            for seed in 0..SCRIPTS {
                let edited = script::run(text, kind, &mut Random::new(1000 * number + seed));
                figures.add(text, &edited);
            }
        }
        print_figures(&format!("{kind:?}"), &figures);
        all.merge(figures);
    }
    println!("{} sources, {} scripts over each", sources.len(), SCRIPTS * script::KINDS.len() as u64);
    print_figures("all", &all);
    assert!(share(all.unchanged_right, all.unchanged) >= 99.5);
    assert!(all.exact_wrong.is_empty(), "{} wrong lines are shown as exact", all.exact_wrong.len());
}

fn print_figures(name: &str, figures: &Figures) {
    println!(
        "{name}: unchanged {:.3} % of {} right, changed {:.1} % of {}, removed {:.1} % of {}, of lines said to be \
         unchanged {:.4} % are elsewhere, {} exact ones",
        share(figures.unchanged_right, figures.unchanged),
        figures.unchanged,
        share(figures.changed_right, figures.changed),
        figures.changed,
        share(figures.removed_right, figures.removed),
        figures.removed,
        share(figures.sure_wrong, figures.sure),
        figures.exact_wrong.len(),
    );
    for line in figures.exact_wrong.iter().take(12) {
        println!("    exact but elsewhere: {line:?}");
    }
}

//! Iterators over iterators, formatting, maps and threads: little source, frames inlined many levels deep.

use std::collections::{BTreeMap, HashMap};

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        format!("shape of {:.1}", self.area())
    }
}

struct Polygon(Vec<(f64, f64)>);

impl Shape for Polygon {
    fn area(&self) -> f64 {
        let next = self.0.iter().cycle().skip(1);
        self.0.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum::<f64>().abs() / 2.0
    }
}

fn words(text: &str) -> BTreeMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase) {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

fn partition<T: PartialOrd + Clone>(items: &[T]) -> Vec<T> {
    let Some((pivot, rest)) = items.split_first() else { return Vec::new() };
    let (low, high): (Vec<_>, Vec<_>) = rest.iter().cloned().partition(|item| item < pivot);
    [partition(&low), vec![pivot.clone()], partition(&high)].concat()
}

fn main() {
    let text: String = std::env::args().chain(["the quick fox; the lazy dog".to_owned()]).collect::<Vec<_>>().join(" ");
    let counts = words(&text);
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Polygon(vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]))];
    let numbers = partition(&(0..100u64).map(|n| n * 37 % 101).collect::<Vec<_>>());
    let names = partition(&counts.keys().cloned().collect::<Vec<_>>());
    let thread = std::thread::spawn(move || numbers.iter().fold(7u64, |a, b| a.rotate_left(3) ^ b));
    println!("{counts:?} {names:?} {} {:?}", shapes[0].name(), thread.join());
}

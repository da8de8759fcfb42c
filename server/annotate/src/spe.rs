//! SPE statistics per place: summed over its addresses, as costs and in words.

use crate::metric::{Part, Statistic};
use crate::model::ModelFrame;
use crate::table::{Cost, CostTable};
use crate::text::{count, counted};
use heatline_profile::{
    Distribution, ModuleId, Percent, Ratio, SpeOperation, SpeOrigin, SpeSnoop, SpeSource, SpeStats, Weight, round,
};

impl CostTable {
    /// The SPE statistics of all places of a kind, numbered by `key`; empty where the profile has none.
    pub(crate) fn spe(&self, count: usize, key: impl Fn(&ModelFrame, ModuleId) -> u32) -> Vec<SpeStats> {
        let model = self.model();
        let Some(table) = &model.profile.spe else { return Vec::new() };
        let mut sums = vec![SpeStats::default(); count];
        for row in &table.rows {
            let thread = row.thread.map(|id| model.profile.thread(id));
            if !self.selection().filter.selects_thread(thread) {
                continue;
            }
            let location = model.node_location[row.stack.0 as usize].0 as usize;
            let place = key(&self.frames(row.stack.0)[0], model.module_of[location]);
            if let Some(sum) = sums.get_mut(place as usize) {
                *sum += &row.stats;
            }
        }
        sums
    }

    /// The cost that stands for a place under the selected statistic, if one is selected and the place has it.
    pub(crate) fn statistic(&self, stats: &SpeStats, sum: &Cost) -> Option<Cost> {
        let statistic = self.selection().metric.statistic?;
        Some(match (self.part()?, statistic) {
            (Part::Ratio(_, of), Statistic::Rate) => {
                let ratio = of(stats);
                let percent = Percent::of(Weight(ratio.count), Weight(ratio.of));
                Cost { weight: Weight(ratio.count), percent, samples: ratio.of, measured: false }
            }
            (Part::Latency(_, of), statistic) => {
                let value = latency(of(stats), statistic).unwrap_or(0.0);
                Cost { weight: Weight(value.round() as u64), ..*sum }
            }
            (Part::Ratio(..), _) => return None,
        })
    }

    /// What the statistics are of.
    fn origin(&self) -> SpeOrigin {
        self.model().profile.spe.as_ref().map(|table| table.origin).unwrap_or_default()
    }

    fn part(&self) -> Option<Part> {
        Part::of(&self.model().profile.event(self.selection().metric.event).name)
    }

    /// The words of a hint under the selected statistic: `p95 412 cyc`, `L1 miss 38.0 %`.
    pub(crate) fn statistic_label(&self, stats: &SpeStats) -> Option<String> {
        let statistic = self.selection().metric.statistic?;
        match self.part()? {
            Part::Ratio(name, of) => rate(of(stats)).map(|rate| format!("{name} {rate}")),
            Part::Latency(name, of) => {
                let word = match statistic {
                    Statistic::P50 => "p50",
                    Statistic::P95 => "p95",
                    _ => "mean",
                };
                let value = latency(of(stats), statistic)?;
                Some(format!("{name}{word} {} cyc", self.cycles(value)))
            }
        }
    }

    /// Cycles in words; `≥` where counters stop.
    fn cycles(&self, value: f64) -> String {
        let recording = self.model().profile.spe.as_ref().map(|table| &table.recording);
        let saturated = recording.is_some_and(|recording| value.fract() == 0.0 && recording.is_saturated(value as u16));
        let at_least = if saturated { "≥ " } else { "" };
        format!("{at_least}{}", if value < 10.0 { round(value) } else { count(value.round() as u64) })
    }

    /// What a lens adds for SPE: mean latency and share of L1 misses.
    pub(crate) fn spe_lens(&self, stats: &SpeStats) -> Vec<String> {
        let mean = stats.total_latency.mean().map(|mean| format!("mean {} cyc", self.cycles(mean)));
        let misses = rate(stats.l1d_miss).map(|rate| format!("L1 miss {rate}"));
        mean.into_iter().chain(misses).collect()
    }

    /// All statistics of a place, in markdown.
    pub(crate) fn spe_hover(&self, stats: &SpeStats) -> String {
        let what = match self.origin() {
            SpeOrigin::Spe => "**Arm SPE**",
            SpeOrigin::Memory => "**memory accesses**",
        };
        let mut text = format!(
            "{what}, {}; operations are sampled, so there is no inclusive cost",
            counted(stats.records, "record")
        );
        if self.model().profile.spe.as_ref().is_some_and(|table| table.recording.filtered) {
            text += "; shares are of the filtered operations";
        }
        let latencies = [
            ("total", &stats.total_latency),
            ("issue", &stats.issue_latency),
            ("execution", &stats.execution_latency),
            ("translation", &stats.translation_latency),
        ];
        if latencies.iter().any(|(_, latency)| !latency.is_empty()) {
            text += "\n\n| latency (cycles) | mean | p50 | p95 | sum |\n|---|---|---|---|---|";
            for (name, latency) in latencies.into_iter().filter(|(_, latency)| !latency.is_empty()) {
                let rank = |percent| latency.percentile(percent).map_or(String::new(), |v| self.cycles(f64::from(v)));
                let mean = latency.mean().map_or(String::new(), |mean| self.cycles(mean));
                text += &format!("\n| {name} | {mean} | {} | {} | {} |", rank(50), rank(95), count(latency.sum()));
            }
        }
        if let Some(histogram) = histogram(&stats.total_latency) {
            text += &format!("\n\n```text\n{histogram}```");
        }
        let ratios = [
            ("L1D miss", stats.l1d_miss),
            ("L2D miss", stats.l2d_miss),
            ("LLC miss", stats.llc_miss),
            ("TLB miss", stats.tlb_miss),
            ("mispredicted", stats.mispredicted),
            ("not taken", stats.not_taken),
            ("misaligned", stats.misaligned),
            ("remote", stats.remote),
        ];
        for (name, ratio) in ratios {
            if let Some(rate) = rate(ratio) {
                text += &format!("\n- {name} {rate} ({} of {})", count(ratio.count), count(ratio.of));
            }
        }
        let loads: u64 = stats.sources.iter().sum();
        let sources = SpeSource::ALL.map(|source| (source.name(), stats.source(source)));
        text += &split("\n\nloads got their data from: ", &sources, loads);
        let known: u64 = stats.snoops.iter().sum();
        let snoops = SpeSnoop::ALL.map(|snoop| (snoop.name(), stats.snoop(snoop)));
        text += &split("\n\nother caches said: ", &snoops, known);
        let operations = SpeOperation::ALL.map(|kind| (kind.name(), stats.operation(kind)));
        text += &split("\n\noperations: ", &operations, stats.records);
        text
    }
}

fn latency(of: &Distribution, statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Rate => None,
        Statistic::Mean => of.mean(),
        Statistic::P50 => of.percentile(50).map(f64::from),
        Statistic::P95 => of.percentile(95).map(f64::from),
    }
}

fn rate(ratio: Ratio) -> Option<String> {
    Percent::of(Weight(ratio.count), Weight(ratio.of)).map(|percent| percent.to_string())
}

fn split(title: &str, parts: &[(&str, u64)], whole: u64) -> String {
    let mut parts: Vec<_> = parts.iter().filter(|(_, part)| *part > 0).collect();
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(*part));
    let shares =
        parts.iter().filter_map(|(name, part)| Some(format!("{name} {}", Percent::of(Weight(*part), Weight(whole))?)));
    let shares: Vec<String> = shares.collect();
    if shares.is_empty() { String::new() } else { format!("{title}{}", shares.join(" · ")) }
}

/// The longest bar of a histogram, in characters.
const BAR: u64 = 24;

/// A latency distribution as text, one row per power of two.
fn histogram(latency: &Distribution) -> Option<String> {
    let mut bins = [0u64; 17];
    for &(value, records) in latency.counts() {
        bins[(u16::BITS - value.leading_zeros()) as usize] += u64::from(records);
    }
    let most = *bins.iter().max()?;
    let first = bins.iter().position(|&bin| bin > 0)?;
    let last = bins.iter().rposition(|&bin| bin > 0)?;
    let mut text = String::new();
    for (bits, &bin) in bins.iter().enumerate().take(last + 1).skip(first) {
        let (low, high) = if bits == 0 { (0, 0) } else { (1u32 << (bits - 1), (1u32 << bits) - 1) };
        let length = (bin * BAR).div_ceil(most.max(1)) as usize;
        let line = format!("{low:>5}–{high:<5} {:BAR$} {}", "█".repeat(length), count(bin), BAR = BAR as usize);
        text += line.trim_end();
        text.push('\n');
    }
    Some(text)
}

//! The words that are shown: hints, lenses, tooltips, amounts. Finished text, the same in every editor and in tables.

use crate::calls::CallBasis;
use crate::compare::{Delta, Verdict};
use crate::placement::Placement;
use crate::table::{Cost, Coverage};
use crate::times::Times;
use crate::view::{Annotations, FunctionView, LineView};
use heatline_profile::{CallTable, Event, Percent, Profile, SpeOrigin, Unit, Weight, round};

/// Below this many samples a count stands in place of a percentage.
pub const FEWEST_SAMPLES: u64 = 5;

/// Sets thousands apart: `1 234`, with a narrow no-break space.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len());
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `1 sample`, `1 234 samples`.
pub fn samples(number: u64) -> String {
    counted(number, "sample")
}

/// A number of things: `1 row`, `1 234 rows`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// How many samples stand behind a cost; nothing where it was measured.
pub fn sampled(cost: &Cost) -> Option<String> {
    (!cost.measured).then(|| samples(cost.samples))
}

/// What a whole profile is made of: `1 234 samples`, or `1 200 calls` where calls were recorded.
pub fn extent(profile: &Profile) -> String {
    let number = profile.samples();
    if profile.calls.is_some() { crate::times::calls_text(number) } else { samples(number) }
}

/// A weight in the unit of its event: `308.5 ms`, `1 234 567 cycles`.
pub fn amount(weight: Weight, unit: Unit) -> String {
    if unit != Unit::Nanoseconds {
        return format!("{} {}", count(weight.0), unit.name());
    }
    let ns = weight.0 as f64;
    match weight.0 {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// A time in three digits: `420 ms`, `1.23 s`, `12 ns`.
pub fn duration(time: Weight) -> String {
    let ns = time.0 as f64;
    let (value, unit) = match time.0 {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A share, or the count where too few samples stand behind it.
pub fn share(cost: &Cost) -> String {
    match cost.percent {
        Some(percent) if cost.samples >= FEWEST_SAMPLES || cost.measured => percent.to_string(),
        _ => samples(cost.samples),
    }
}

/// The cost of a call in words: a share of the samples, or how often a branch was taken.
pub fn call(cost: &Cost, basis: Option<CallBasis>) -> String {
    match basis {
        Some(CallBasis::Branches) => taken(cost.samples),
        _ => share(cost),
    }
}

/// The word of JSON for what calls are known from.
pub fn basis(basis: CallBasis) -> &'static str {
    match basis {
        CallBasis::Stacks => "stacks",
        CallBasis::Branches => "branches",
    }
}

/// `taken once`, `taken 1 234 times`: how often a branch was recorded.
pub fn taken(times: u64) -> String {
    if times == 1 { "taken once".into() } else { format!("taken {} times", count(times)) }
}

/// `Δ +3.2 pp`.
pub fn delta(delta: &Delta) -> String {
    format!("Δ {}", points(delta.points))
}

/// `+3.2 pp`.
pub fn points(points: f64) -> String {
    // What is left of a difference of equal shares is no difference.
    let points = if points.abs() < 1e-9 { 0.0 } else { points };
    let sign = if points < 0.0 { '\u{2212}' } else { '+' };
    format!("{sign}{} pp", round(points.abs()))
}

/// The 95 % interval of a difference, in percentage points: `−40.8 to +18.6`.
pub fn interval(change: &Delta) -> String {
    let end = |end: f64| points(end).replace(" pp", "");
    format!("{} to {}", end(change.low), end(change.high))
}

/// A cost in words: `12.0 % · incl 45.0 %`; `incl 90.0 %` where nothing is exclusive. Empty where there is nothing.
pub fn costs(exclusive: &Cost, inclusive: Option<&Cost>) -> String {
    let mut parts = Vec::with_capacity(2);
    if exclusive.samples > 0 {
        parts.push(share(exclusive));
    }
    let other = inclusive.filter(|inclusive| inclusive.weight != exclusive.weight && inclusive.samples > 0);
    parts.extend(other.map(|inclusive| format!("incl {}", share(inclusive))));
    parts.join(" · ")
}

/// The hint of a line but for its difference: its cost in words. `with_inclusive` is the person's wish to see inclusive
/// cost at all. `None` where there is nothing to show.
pub fn hint(line: &LineView, with_inclusive: bool) -> Option<String> {
    // A statistic stands for itself.
    if let Some(label) = line.label.as_ref().filter(|_| line.exclusive.samples >= FEWEST_SAMPLES) {
        return Some(label.clone());
    }
    let text = costs(&line.exclusive, line.inclusive.as_ref().filter(|_| with_inclusive));
    (!text.is_empty()).then_some(text)
}

/// The difference that a line's hint shows, `Δ +3.2 pp`. A statistic has none: it is no share.
pub fn hint_delta(line: &LineView) -> Option<String> {
    let is_statistic = line.label.is_some() && line.exclusive.samples >= FEWEST_SAMPLES;
    line.delta.as_ref().filter(|_| !is_statistic).map(delta)
}

/// How much of the weight reached a line, in few words: `99.4 % on lines`.
pub fn coverage(coverage: &Coverage) -> String {
    format!("{} % on lines", round(coverage.line * 100.0))
}

/// Where the weight ended, in a sentence: `99.4 % reached a line, 0.0 % only a symbol, 0.61 % nothing`.
pub fn coverage_sentence(coverage: &Coverage) -> String {
    let [line, symbol, none] = [coverage.line, coverage.symbol, coverage.none].map(|share| round(share * 100.0));
    format!("{line} % reached a line, {symbol} % only a symbol, {none} % nothing")
}

/// The lens of a function: `exclusive 12.0 % · inclusive 45.0 % · 1 234 samples · Δ +3.2 pp`; under five samples only
/// their number. `delta` words the difference: [`delta`] or [`delta_and_verdict`].
pub fn lens(function: &FunctionView, delta: fn(&Delta) -> String) -> String {
    if let Some(text) = function.times.as_ref().and_then(Times::lens) {
        let change = function.delta.as_ref().map(|change| format!(" · {}", delta(change)));
        return text + change.as_deref().unwrap_or_default();
    }
    let shown = function.inclusive.unwrap_or(function.exclusive);
    if shown.samples < FEWEST_SAMPLES {
        return samples(shown.samples);
    }
    let mut parts = Vec::with_capacity(4);
    if let Some(percent) = function.exclusive.percent.filter(|_| function.exclusive.samples > 0) {
        parts.push(format!("exclusive {percent}"));
    }
    if let Some(percent) = function.inclusive.and_then(|inclusive| inclusive.percent) {
        parts.push(format!("inclusive {percent}"));
    }
    parts.push(samples(shown.samples));
    parts.extend(function.extra.iter().cloned());
    parts.extend(function.delta.as_ref().map(delta));
    parts.join(" · ")
}

/// Whether a cost reaches a threshold in percent, exclusively or inclusively.
pub fn reaches(exclusive: &Cost, inclusive: Option<&Cost>, threshold: f64) -> bool {
    let reaches = |cost: &Cost| cost.samples > 0 && cost.percent.map_or(0.0, Percent::value) >= threshold;
    reaches(exclusive) || inclusive.is_some_and(reaches)
}

/// The tooltip of a line's hint, in markdown: counts, amounts, what the percentages are of, and the placement.
pub fn tooltip(annotations: &Annotations, line: &LineView, placement: Placement) -> String {
    let table = annotations.table();
    let profile = table.model().profile();
    let event = profile.event(table.selection().metric.event);
    let metric = table.selection().metric.id(profile);
    let of = |cost: &Cost| {
        if cost.measured {
            return format!("{} of {}", amount(cost.weight, event.unit), amount(table.total().weight, event.unit));
        }
        format!("{} of {}, {}", count(cost.samples), samples(table.total().samples), amount(cost.weight, event.unit))
    };
    let mut text = String::new();
    if table.has_exclusive() {
        text += &format!("**exclusive** {}: {}", shown_share(&line.exclusive), of(&line.exclusive));
    }
    if let Some(inclusive) = &line.inclusive {
        text += &format!("\n\n**inclusive** {}: {}", shown_share(inclusive), of(inclusive));
    }
    text += &format!("\n\nshares are of all `{metric}`");
    if let Some(times) = &line.times {
        text += &format!("\n\n{}", times.markdown());
    }
    if let Some(delta) = &line.delta {
        text += &format!("\n\n{}", delta_sentence(delta));
    }
    text += &skid(event).map(|note| format!("\n\n{note}")).unwrap_or_default();
    text += &format!("\n\n{}", placement_sentence(placement));
    text.trim_start().to_owned()
}

pub(crate) fn shown_share(cost: &Cost) -> String {
    cost.percent.map_or_else(|| "no samples".into(), |percent| percent.to_string())
}

/// What to say of differences of measured times.
pub const UNTESTABLE: &str = "measured times of one run each do not tell how much they change from run to run";

/// `Δ +3.2 pp`, the other side, the interval of the difference, and whether that is noise.
pub fn delta_sentence(change: &Delta) -> String {
    let before = match change.samples_before {
        0 => "nothing".to_owned(),
        count => format!("{} % ({})", round(change.before), samples(count)),
    };
    let verdict = match (change.verdict, change.p_adjusted) {
        (Verdict::Untestable, _) => {
            return format!("{} against {before} in the baseline; {UNTESTABLE}", delta(change));
        }
        (Verdict::Significant, Some(p)) if p >= 0.001 => format!("significant: adjusted p {p:.3}"),
        (Verdict::Significant, _) => "significant: adjusted p below 0.001".to_owned(),
        (Verdict::BelowThreshold, _) => "more than noise, but below the threshold".to_owned(),
        (Verdict::Noise, _) => format!("within noise (±{} pp)", round((change.high - change.low) / 2.0)),
    };
    format!(
        "{} against {before} in the baseline, one run each: 95 % interval {} pp, {verdict}",
        delta(change),
        interval(change)
    )
}

/// A difference in few words: `Δ +3.2 pp`, and whether it is within noise.
pub fn delta_and_verdict(change: &Delta) -> String {
    match change.verdict {
        Verdict::Significant => delta(change),
        Verdict::BelowThreshold => format!("{} (below the threshold)", delta(change)),
        Verdict::Noise => format!("{} (within noise)", delta(change)),
        Verdict::Untestable => format!("{} (not testable)", delta(change)),
    }
}

/// What to say of an event whose addresses lie behind the cause.
pub(crate) fn skid(event: &Event) -> Option<&'static str> {
    if event.name == CallTable::OFF_CPU {
        return (!event.precise).then_some(
            "approximate stack: time off the processor is given to the last sample of the thread before it was switched out",
        );
    }
    (!event.precise)
        .then_some("approximate line: the event is not precise, samples may lie some instructions late (skid)")
}

/// How a profile was recorded, one sentence a line: what its numbers are of, what was lost, and what to do better next
/// time. Empty where the profile does not say.
pub fn recording(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    if !profile.recording.command_line.is_empty() {
        lines.push(format!("recorded by: {}", profile.recording.command_line.join(" ")));
    }
    let off_cpu = profile.events.iter().find(|event| event.name == CallTable::OFF_CPU);
    if off_cpu.is_some_and(|event| !event.precise) {
        lines.push(
            "off-cpu time is given to the last sample of the thread before it was switched out; with -e sched:sched_switch -g \
             the stacks that were left are recorded"
                .into(),
        );
    }
    if profile.calls.is_some() {
        lines.push("times are measured and include what the instrumentation cost".into());
    }
    if let Some(table) = &profile.spe {
        let recording = &table.recording;
        lines.push(match table.origin {
            SpeOrigin::Spe => format!("Arm SPE recorded with: {}", recording.settings.join("; ")),
            SpeOrigin::Memory => format!("memory accesses sampled by: {}", recording.settings.join("; ")),
        });
        if recording.filtered {
            lines.push("shares are of the filtered operations".into());
        }
        lines.extend(recording.losses());
        lines.extend(recording.advice.iter().cloned());
    }
    lines
}

/// What stands before the hint of a line whose text is not as it was.
pub fn hint_mark(placement: Placement) -> &'static str {
    if placement == Placement::Changed { "~" } else { "" }
}

/// The share of a function's cost that was on lines that were removed: `2.1 % on removed lines`.
pub fn removed(percent: f64) -> String {
    format!("{} % on removed lines", round(percent))
}

/// What the placement means, for people.
pub fn placement_sentence(placement: Placement) -> &'static str {
    match placement {
        Placement::Exact => "placement: exact, the line is as it was profiled and where it was",
        Placement::Moved => "placement: moved, the line's text is unchanged",
        Placement::Changed => "placement: changed, the line was edited since it was profiled",
        Placement::Gone => "placement: gone, the profiled line was removed",
        Placement::Unverified => {
            "placement: unverified, the profiled text is not known; the line is where debug information has it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::Tally;
    use std::num::NonZeroU32;

    fn cost(weight: u64, samples: u64) -> Cost {
        Cost::new(Tally { weight: Weight(weight), samples, squares: 0.0 }, Weight(1000))
    }

    fn line(exclusive: Cost, inclusive: Option<Cost>, delta: Option<Delta>) -> LineView {
        LineView { line: NonZeroU32::MIN, exclusive, inclusive, delta, level: 0, label: None, times: None }
    }

    fn difference(points: f64, low: f64, high: f64) -> Delta {
        let (p, p_adjusted) = (0.001, Some(0.01));
        Delta {
            points,
            low,
            high,
            before: 8.8,
            samples_before: 88,
            p,
            p_adjusted,
            significant: true,
            verdict: Verdict::Significant,
        }
    }

    fn whole_hint(line: &LineView) -> Option<String> {
        let cost = hint(line, true)?;
        Some(cost + &hint_delta(line).map(|delta| format!(" · {delta}")).unwrap_or_default())
    }

    #[test]
    fn hints_name_what_they_show() {
        let shown = |line: &LineView| whole_hint(line).unwrap_or_default();
        assert_eq!(shown(&line(cost(120, 12), Some(cost(450, 45)), None)), "12.0 % · incl 45.0 %");
        assert_eq!(shown(&line(cost(120, 12), Some(cost(120, 12)), None)), "12.0 %");
        assert_eq!(shown(&line(cost(120, 12), None, None)), "12.0 %");
        assert_eq!(shown(&line(cost(0, 0), Some(cost(900, 90)), None)), "incl 90.0 %");
        assert_eq!(shown(&line(cost(30, 3), Some(cost(900, 90)), None)), "3 samples · incl 90.0 %");
        assert_eq!(shown(&line(cost(10, 1), None, None)), "1 sample");
        let delta = difference(3.2, 1.0, 5.0);
        assert_eq!(shown(&line(cost(120, 12), Some(cost(450, 45)), Some(delta))), "12.0 % · incl 45.0 % · Δ +3.2 pp");
        assert_eq!(hint(&line(cost(0, 0), Some(cost(900, 90)), None), false), None);
        let statistic =
            |samples| LineView { label: Some("p95 412 cyc".into()), ..line(cost(412, samples), None, Some(delta)) };
        assert_eq!(shown(&statistic(5)), "p95 412 cyc");
        assert_eq!(shown(&LineView { delta: None, ..statistic(4) }), "4 samples");
    }

    #[test]
    fn the_longest_hint_fits_the_editors_limit() {
        let delta = difference(-100.0, -100.0, 0.0);
        let text = whole_hint(&line(cost(999, 1000), Some(cost(1000, 1001)), Some(delta))).unwrap();
        assert!(text.chars().count() <= 43, "{text}");
    }

    #[test]
    fn lenses_count_what_they_show() {
        let function = |exclusive, inclusive, delta| FunctionView {
            line: NonZeroU32::MIN,
            functions: Vec::new(),
            exclusive,
            inclusive,
            delta,
            extra: Vec::new(),
            times: None,
        };
        let change = difference(3.2, 1.0, 5.0);
        assert_eq!(
            lens(&function(cost(120, 320), Some(cost(450, 1234)), Some(change)), delta),
            "exclusive 12.0 % · inclusive 45.0 % · 1\u{202f}234 samples · Δ +3.2 pp"
        );
        assert_eq!(lens(&function(cost(120, 320), None, None), delta), "exclusive 12.0 % · 320 samples");
        assert_eq!(lens(&function(cost(1, 1), Some(cost(3, 3)), None), delta), "3 samples");
        assert_eq!(lens(&function(cost(0, 0), Some(cost(1, 1)), None), delta), "1 sample");
    }

    #[test]
    fn amounts_carry_their_unit() {
        assert_eq!(amount(Weight(308_500_000), Unit::Nanoseconds), "308.5 ms");
        assert_eq!(amount(Weight(1_500_000_000), Unit::Nanoseconds), "1.50 s");
        assert_eq!(amount(Weight(1_234_567), Unit::Cycles), "1\u{202f}234\u{202f}567 cycles");
    }
}

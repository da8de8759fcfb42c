//! Which part of a recording is wanted, as `--time` says it: from one time to another, or in percent of the recording.

use crate::load::{LoadMonitor, read_profile};
use anyhow::{Context, anyhow, bail};
use heatline_profile::ProfileKind;
use heatline_readers::{ReadOptions, TimeFilter, perf_data};
use std::fs::File;
use std::path::Path;

/// What `--time` asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum TimeChoice {
    /// Moments on the recording's clock.
    Moments(TimeFilter),
    /// Parts of the time from the first to the last sample, as fractions from 0 to 1, in the order in which they were
    /// named.
    Parts(Vec<(f64, f64)>),
}

impl TimeChoice {
    /// Understands `12.5,13`, several such pairs apart by blanks, `10%-20%,50%-60%`, `10%/2,10%/3` and `10%`, as perf
    /// does.
    ///
    /// # Errors
    /// If the text is none of them.
    pub fn parse(text: &str) -> anyhow::Result<TimeChoice> {
        if !text.contains('%') {
            let pairs = text.split_whitespace().map(moments).collect::<anyhow::Result<Vec<_>>>()?;
            if pairs.is_empty() {
                bail!("--time: expected A,B in seconds, or 10%-20%, or 10%/2");
            }
            return Ok(TimeChoice::Moments(TimeFilter::new(pairs)));
        }
        let part = |part: &str| {
            let expected = "expected percents from 0 to 100 such as 10%-20%, or 10%/2 for the second tenth";
            let named = if part == text { format!("--time {text}") } else { format!("--time {text}: {part}") };
            let (from, to) = part_of(part).with_context(|| format!("{named}: {expected}"))?;
            if from > to {
                bail!("{named}: the end lies before the start; write the smaller percentage first");
            }
            if to > 1.0 {
                bail!("{named}: the recording ends at 100 %");
            }
            Ok((from, to))
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        Ok(TimeChoice::Parts(parts.map(part).collect::<anyhow::Result<_>>()?))
    }

    /// The moments of one recording.
    ///
    /// # Errors
    /// If the recording does not say when its samples were taken, or cannot be read twice.
    pub fn of(&self, path: &Path, monitor: &dyn LoadMonitor) -> anyhow::Result<TimeFilter> {
        let filter = match self {
            TimeChoice::Moments(filter) => filter.clone(),
            TimeChoice::Parts(parts) => {
                let span = span(path, monitor)?;
                between(parts, span)
            }
        };
        if path.is_dir() && filter.has_gaps() && !path.join("data").exists() {
            bail!("{}: of recorded calls --time takes one stretch, not several", path.display());
        }
        Ok(filter)
    }
}

/// As perf has it: of several parts only the last holds its end.
fn between(parts: &[(f64, f64)], (first, last): (u64, u64)) -> TimeFilter {
    let at = |part: f64| first.saturating_add((part * last.saturating_sub(first) as f64).round() as u64);
    let of = |(number, &(from, to)): (usize, &(f64, f64))| {
        let end = at(to);
        if number + 1 == parts.len() { Some((at(from), end)) } else { Some((at(from), end.checked_sub(1)?)) }
    };
    TimeFilter::new(parts.iter().enumerate().filter_map(of))
}

/// When the first and the last sample were taken: what the recording's header says, else by reading it.
///
/// # Errors
/// If the recording does not say, or cannot be read twice.
pub fn span(path: &Path, monitor: &dyn LoadMonitor) -> anyhow::Result<(u64, u64)> {
    if path.as_os_str() == "-" {
        bail!("--time in percent needs a file: standard input cannot be read twice");
    }
    let from_header = File::open(path).ok().and_then(|mut file| perf_data::sample_times(&mut file));
    if let Some(span) = from_header {
        return Ok(span);
    }
    let profile = read_profile(path, &ReadOptions::default(), monitor)?;
    let why = match profile.kind {
        ProfileKind::Heatline => "the samples of a frozen profile are added up; freeze the recording with --time",
        _ => "the recording does not say when its samples were taken",
    };
    profile.recording.span.ok_or_else(|| anyhow!("{}: --time: {why}", path.display()))
}

/// `10%-20%`, `10%/2` or `10%` as fractions.
fn part_of(text: &str) -> Option<(f64, f64)> {
    let (from, to) = if let Some((size, number)) = text.split_once('/') {
        let (size, number) = (fraction(size)?, number.trim().parse::<u32>().ok().filter(|number| *number > 0)?);
        (size * f64::from(number - 1), size * f64::from(number))
    } else if let Some((from, to)) = text.split_once('-') {
        (fraction(from)?, fraction(to)?)
    } else {
        (0.0, fraction(text)?)
    };
    Some((from, to))
}

/// `12.5%` as a fraction.
fn fraction(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (percent.is_finite() && percent >= 0.0).then_some(percent / 100.0)
}

/// `A,B` in seconds as nanoseconds; a missing end is open.
fn moments(text: &str) -> anyhow::Result<(u64, u64)> {
    let (start, end) = text.split_once(',').with_context(|| format!("--time {text}: expected A,B in seconds"))?;
    let parse = |text: &str, missing: u64| -> anyhow::Result<u64> {
        if text.is_empty() {
            return Ok(missing);
        }
        nanoseconds(text).with_context(|| format!("--time {text}: expected seconds such as 12.345678901"))
    };
    let range = (parse(start, 0)?, parse(end, u64::MAX)?);
    if range.0 > range.1 {
        bail!("--time {text}: the end lies before the start");
    }
    Ok(range)
}

/// Decimal seconds as nanoseconds, exactly.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments_of(text: &str) -> Option<TimeFilter> {
        match TimeChoice::parse(text).ok()? {
            TimeChoice::Moments(filter) => Some(filter),
            TimeChoice::Parts(parts) => Some(between(&parts, (1000, 2000))),
        }
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(moments_of("12.5,13"), Some((12_500_000_000, 13_000_000_000).into()));
        assert_eq!(moments_of("201.000000001,"), Some((201_000_000_001, u64::MAX).into()));
        assert_eq!(
            moments_of("1,2 4,"),
            Some(TimeFilter::new([(1_000_000_000, 2_000_000_000), (4_000_000_000, u64::MAX)]))
        );
        for text in ["3,2", "5", "a,b", "", "1.0000000001,2"] {
            assert_eq!(moments_of(text), None, "{text}");
        }
    }

    #[test]
    fn percents_are_of_the_time_between_the_first_and_the_last_sample() {
        assert_eq!(moments_of("10%-20%"), Some((1100, 1200).into()));
        assert_eq!(moments_of("10%/2"), Some((1100, 1200).into()));
        assert_eq!(moments_of("50%"), Some((1000, 1500).into()));
        assert_eq!(moments_of(" 10% - 20% ,"), Some((1100, 1200).into()));
        assert_eq!(moments_of("30%-40%,0%-10%"), Some(TimeFilter::new([(1300, 1399), (1000, 1100)])));
        assert_eq!(moments_of("10%/1,10%/2"), Some((1000, 1200).into()));
        let refused =
            ["10%/0", "10%/11", "5-20%", "-10%", "10%-", "0%-101%", "20%-10%", "10%/2/3", "%", "nan%", "10%/2 10%/3"];
        for text in refused {
            assert_eq!(moments_of(text), None, "{text}");
        }
    }
}

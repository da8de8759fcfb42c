//! Intervals and tests for shares of samples.
//!
//! The model is binomial: each sample hits a place or not. Samples of one run are not independent, so every interval
//! is a lower bound of the real uncertainty.

/// The standard normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval for `hits` of `samples`, as shares in 0..=1. `None` without samples.
///
/// Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209–212.
pub fn wilson(hits: f64, samples: f64) -> Option<(f64, f64)> {
    if samples <= 0.0 {
        return None;
    }
    let share = (hits / samples).clamp(0.0, 1.0);
    let z2n = Z * Z / samples;
    let centre = (share + z2n / 2.0) / (1.0 + z2n);
    let half = Z * (share * (1.0 - share) / samples + z2n / (4.0 * samples)).sqrt() / (1.0 + z2n);
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// Newcombe's hybrid score 95 % interval for the difference of two shares, second minus first, in −1..=1. `None`
/// where a side has no samples.
///
/// Source: R. G. Newcombe, Statistics in Medicine 17 (1998) 873–890, method 10.
pub fn newcombe(first: (f64, f64), second: (f64, f64)) -> Option<(f64, f64)> {
    let (low1, high1) = wilson(first.0, first.1)?;
    let (low2, high2) = wilson(second.0, second.1)?;
    let (share1, share2) = (first.0 / first.1, second.0 / second.1);
    let difference = share2 - share1;
    let low = difference - (share2 - low2).hypot(high1 - share1);
    let high = difference + (high2 - share2).hypot(share1 - low1);
    Some((low.max(-1.0), high.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: (f64, f64), second: (f64, f64), low: f64, high: f64) {
        let (l, h) = newcombe(first, second).unwrap();
        assert!((100.0 * l - low).abs() < 5e-5 && (100.0 * h - high).abs() < 5e-5, "{l} {h}, expected {low} {high}");
    }

    #[test]
    fn newcombe_as_published_and_worked_by_hand() {
        // The paper's example, 56/70 against 48/80: 0.0524 to 0.3339.
        check((48.0, 80.0), (56.0, 70.0), 5.2431, 33.3873);
        check((50.0, 100.0), (40.0, 200.0), -40.8182, -18.6194);
        check((30.0, 100.0), (60.0, 200.0), -11.2685, 10.5025);
        check((5.0, 100.0), (20.0, 200.0), -2.0652, 10.7015);
        check((0.0, 100.0), (80.0, 200.0), 32.4867, 46.9163);
        check((15.0, 100.0), (0.0, 200.0), -23.2836, -9.0022);
        check((500.0, 10000.0), (560.0, 10000.0), -0.0213, 1.2222);
        check((1.0, 1000.0), (4.0, 1000.0), -0.2246, 0.9294);
    }

    #[test]
    fn nothing_can_be_said_without_samples() {
        assert_eq!(wilson(0.0, 0.0), None);
        assert_eq!(newcombe((0.0, 0.0), (1.0, 2.0)), None);
    }
}

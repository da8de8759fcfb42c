//! Intervals and tests for shares of samples.
//!
//! The model is binomial: each sample hits a place or not. Samples of one run are not independent, so every interval
//! is a lower bound of the real uncertainty. A side of a comparison is given as `(hits, samples)`; neither needs to be
//! whole, as weighted samples and several runs of one program have effective numbers.

mod special;

use special::{beta, beta_quantile, ln_choose, two_sided_normal};

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

/// The standardised difference of two shares under a pooled share, second minus first; 0 where nothing differs.
pub fn pooled_z(first: (f64, f64), second: (f64, f64)) -> f64 {
    let pooled = (first.0 + second.0) / (first.1 + second.1);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / first.1 + 1.0 / second.1)).sqrt();
    let difference = second.0 / second.1 - first.0 / first.1;
    if deviation > 0.0 { difference / deviation } else { 0.0 }
}

/// The two-sided p-value of [`pooled_z`].
pub fn pooled_p(first: (f64, f64), second: (f64, f64)) -> f64 {
    two_sided_normal(pooled_z(first, second))
}

/// The normal approximation needs so many expected samples in each cell.
const FEWEST_EXPECTED: f64 = 5.0;

/// The two-sided p-value of the difference of two shares: [`pooled_p`] where its approximation holds, else
/// [`fisher_p`]. `None` where a side has no samples.
pub fn share_p(first: (f64, f64), second: (f64, f64)) -> Option<f64> {
    if first.1 <= 0.0 || second.1 <= 0.0 {
        return None;
    }
    let pooled = (first.0 + second.0) / (first.1 + second.1);
    let rarer = pooled.min(1.0 - pooled) * first.1.min(second.1);
    Some(if rarer >= FEWEST_EXPECTED { pooled_p(first, second) } else { fisher_p(first, second) })
}

/// Fisher's exact two-sided p-value: the probability of all tables with the same margins that are no likelier than the
/// one at hand. Counts are rounded to whole ones.
///
/// Source: R. A. Fisher, Journal of the Royal Statistical Society 85 (1922) 87–94.
pub fn fisher_p(first: (f64, f64), second: (f64, f64)) -> f64 {
    let (samples1, samples2) = (first.1.round().max(1.0), second.1.round().max(1.0));
    let (hits1, hits2) = (first.0.round().clamp(0.0, samples1), second.0.round().clamp(0.0, samples2));
    let hits = hits1 + hits2;
    let whole = ln_choose(samples1 + samples2, hits);
    let chance = |hits1: f64| (ln_choose(samples1, hits1) + ln_choose(samples2, hits - hits1) - whole).exp();
    let observed = chance(hits1) * (1.0 + 1e-7);
    let (fewest, most) = ((hits - samples2).max(0.0), hits.min(samples1));
    let tables = (0..).map(|step| fewest + f64::from(step)).take_while(|&hits1| hits1 <= most);
    tables.map(chance).filter(|&chance| chance <= observed).sum::<f64>().min(1.0)
}

/// Whether there is more of something per exposure (seconds, requests): `(count, exposure)` of each side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateTest {
    /// Two-sided p-value of equal rates.
    pub p: f64,
    /// The second rate as a multiple of the first.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end; infinite where the first count is 0.
    pub high: f64,
}

/// The exact conditional test of two counts: under equal rates the second is binomial in their sum. `None` without
/// counts or exposure.
///
/// Source: J. Przyborowski, H. Wilenski, Biometrika 31 (1940) 313–323; interval of C. Clopper, E. Pearson, Biometrika
/// 26 (1934) 404–413.
pub fn rates(first: (u64, f64), second: (u64, f64)) -> Option<RateTest> {
    let (x1, x2) = (first.0 as f64, second.0 as f64);
    let sum = x1 + x2;
    if sum <= 0.0 || first.1 <= 0.0 || second.1 <= 0.0 {
        return None;
    }
    let share = second.1 / (first.1 + second.1);
    // P(X ≤ x2) and P(X ≥ x2) of a binomial of `sum` trials.
    let at_most = if x1 > 0.0 { 1.0 - beta(share, x2 + 1.0, x1) } else { 1.0 };
    let at_least = if x2 > 0.0 { beta(share, x2, x1 + 1.0) } else { 1.0 };
    let odds = |q: f64| q / (1.0 - q) * first.1 / second.1;
    let low = if x2 > 0.0 { odds(beta_quantile(0.025, x2, x1 + 1.0)) } else { 0.0 };
    let high = if x1 > 0.0 { odds(beta_quantile(0.975, x2 + 1.0, x1)) } else { f64::INFINITY };
    let ratio = (x2 / second.1) / (x1 / first.1);
    Some(RateTest { p: (2.0 * at_most.min(at_least)).min(1.0), ratio, low, high })
}

/// Kish's effective number of samples with unequal weights: (Σw)² / Σw².
pub fn kish(weight: f64, squares: f64) -> Option<f64> {
    (squares > 0.0).then(|| weight * weight / squares)
}

/// How much more the shares of several runs of one program spread than those of independent samples: Pearson's χ² by
/// its degrees of freedom, at least 1. Runs are `(hits, samples)`.
pub fn over_dispersion(runs: &[(f64, f64)]) -> f64 {
    let runs: Vec<(f64, f64)> = runs.iter().copied().filter(|run| run.1 > 0.0).collect();
    let (hits, samples) = runs.iter().fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    let share = hits / samples;
    if runs.len() < 2 || share <= 0.0 || share >= 1.0 {
        return 1.0;
    }
    let chi2: f64 = runs.iter().map(|run| (run.0 - run.1 * share).powi(2) / (run.1 * share * (1.0 - share))).sum();
    (chi2 / (runs.len() - 1) as f64).max(1.0)
}

/// The difference of two means, second minus first, of values that were measured several times each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanTest {
    /// Two-sided p-value of equal means.
    pub p: f64,
    /// Lower end of the 95 % interval of the difference.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// Welch's t test, which lets the sides spread differently. `None` where a side was measured only once.
///
/// Source: B. L. Welch, Biometrika 34 (1947) 28–35, with the degrees of freedom of F. E. Satterthwaite, Biometrics
/// Bulletin 2 (1946) 110–114.
pub fn welch(first: &[f64], second: &[f64]) -> Option<MeanTest> {
    let (mean1, error1, free1) = mean_and_error(first)?;
    let (mean2, error2, free2) = mean_and_error(second)?;
    let (difference, error) = (mean2 - mean1, error1 + error2);
    if error <= 0.0 {
        let p = if difference.abs() > 0.0 { 0.0 } else { 1.0 };
        return Some(MeanTest { p, low: difference, high: difference });
    }
    let freedom = error * error / (error1 * error1 / free1 + error2 * error2 / free2);
    let t2 = difference * difference / error;
    let quantile = beta_quantile(0.05, freedom / 2.0, 0.5);
    let half = (freedom * (1.0 - quantile) / quantile * error).sqrt();
    let p = beta(freedom / (freedom + t2), freedom / 2.0, 0.5);
    Some(MeanTest { p, low: difference - half, high: difference + half })
}

/// The mean, its squared standard error, and its degrees of freedom.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64, f64)> {
    let count = values.len() as f64;
    let free = if values.len() < 2 { return None } else { count - 1.0 };
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / free / count, free))
}

/// The p-values of all places that were tested at once, for the correction of Benjamini and Hochberg.
///
/// Source: Y. Benjamini, Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995) 289–300.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Family {
    /// Ascending, each with the adjusted value that belongs to it.
    tests: Vec<(f64, f64)>,
}

impl Family {
    /// The family of these p-values.
    pub fn new(p_values: impl IntoIterator<Item = f64>) -> Self {
        let mut p_values: Vec<f64> = p_values.into_iter().collect();
        p_values.sort_by(f64::total_cmp);
        let count = p_values.len() as f64;
        let mut least = 1.0f64;
        let mut tests: Vec<(f64, f64)> = Vec::with_capacity(p_values.len());
        for (behind, &p) in p_values.iter().enumerate().rev() {
            least = least.min(p * count / (behind + 1) as f64);
            tests.push((p, least));
        }
        tests.reverse();
        Family { tests }
    }

    /// The adjusted value of a p-value of the family. One that stands for several of it gets that of the next greater.
    pub fn adjusted(&self, p: f64) -> f64 {
        self.tests.get(self.tests.partition_point(|test| test.0 < p)).map_or(p, |test| test.1)
    }
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
    fn d10_newcombe_as_published_and_worked_by_hand() {
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

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value}, expected {expected}");
    }

    #[test]
    fn d10_p_values_worked_by_hand() {
        for (first, second, z, p) in [
            ((50.0, 100.0), (40.0, 200.0), -5.3452, 0.0),
            ((30.0, 100.0), (60.0, 200.0), 0.0, 1.0),
            ((5.0, 100.0), (20.0, 200.0), 1.4771, 0.139_649),
            ((0.0, 100.0), (80.0, 200.0), 7.3855, 0.0),
            ((15.0, 100.0), (0.0, 200.0), -5.6195, 0.0),
            ((500.0, 10000.0), (560.0, 10000.0), 1.8938, 0.058_258),
            ((1.0, 1000.0), (4.0, 1000.0), 1.3433, 0.179_168),
        ] {
            near(pooled_z(first, second), z, 5e-5);
            near(pooled_p(first, second), p, 1e-6);
        }
        assert!(pooled_p((50.0, 100.0), (40.0, 200.0)) > 0.0);
    }

    #[test]
    fn few_samples_are_tested_exactly() {
        // The tea-tasting lady: three of four right, both tails.
        near(fisher_p((3.0, 4.0), (1.0, 4.0)), 34.0 / 70.0, 1e-9);
        // 1 of 1000 against 4 of 1000: only 2.5 are expected on each side.
        near(share_p((1.0, 1000.0), (4.0, 1000.0)).unwrap(), fisher_p((1.0, 1000.0), (4.0, 1000.0)), 0.0);
        near(share_p((5.0, 100.0), (20.0, 200.0)).unwrap(), 0.139_649, 1e-6);
        near(fisher_p((0.0, 100.0), (0.0, 100.0)), 1.0, 1e-9);
        // No more than the support is added up, however many samples there are.
        assert!(share_p((0.0, 1e9), (7.0, 1e9)).unwrap() < 0.05);
        assert_eq!(share_p((0.0, 0.0), (7.0, 10.0)), None);
    }

    #[test]
    fn d11_counts_per_exposure_worked_by_hand() {
        for (first, second, p, ratio, low, high) in [
            ((100, 10.0), (130, 10.0), 0.055_614, 1.3, 0.9940, 1.7045),
            ((100, 10.0), (260, 20.0), 0.027_347, 1.3, 1.0284, 1.6541),
            ((5, 1.0), (12, 1.0), 0.143_463, 2.4, 0.7870, 8.6960),
            ((400, 1.0), (460, 1.0), 0.044_170, 1.15, 1.0036, 1.3182),
        ] {
            let test = rates(first, second).unwrap();
            near(test.p, p, 1e-6);
            near(test.ratio, ratio, 1e-9);
            near(test.low, low, 5e-5);
            near(test.high, high, 5e-5);
        }
        for (count, p, low) in [(4, 0.125, 0.6601), (6, 0.03125, 1.1774)] {
            let test = rates((0, 1.0), (count, 1.0)).unwrap();
            near(test.p, p, 1e-9);
            near(test.low, low, 5e-5);
            assert_eq!((test.high, test.ratio), (f64::INFINITY, f64::INFINITY));
        }
        assert_eq!(rates((0, 1.0), (0, 1.0)), None);
    }

    #[test]
    fn means_of_several_measurements_worked_by_hand() {
        // With two degrees of freedom p is 1 − t/√(2 + t²), and the quantile 4.302653.
        let test = welch(&[10.0, 12.0], &[20.0, 22.0]).unwrap();
        near(test.p, 1.0 - 50f64.sqrt() / 52f64.sqrt(), 1e-9);
        near(test.low, 10.0 - 4.302_653 * 2f64.sqrt(), 1e-5);
        near(test.high, 10.0 + 4.302_653 * 2f64.sqrt(), 1e-5);
        // 4.0755 degrees of freedom, the density integrated by Simpson's rule.
        let test = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0, 8.0]).unwrap();
        near(test.p, 0.099_912_864, 1e-6);
        near(test.low, -0.897_975_45, 1e-5);
        near(test.high, 6.897_975_45, 1e-5);
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[3.0, 3.0], &[3.0, 3.0]), Some(MeanTest { p: 1.0, low: 0.0, high: 0.0 }));
        assert_eq!(welch(&[3.0, 3.0], &[4.0, 4.0]), Some(MeanTest { p: 0.0, low: 1.0, high: 1.0 }));
    }

    #[test]
    fn d12_many_places_are_corrected_together() {
        let family = Family::new([0.03, 0.001, 0.5, 0.02]);
        for (p, adjusted) in [(0.001, 0.004), (0.02, 0.04), (0.03, 0.04), (0.5, 0.5)] {
            near(family.adjusted(p), adjusted, 1e-12);
        }
        // Equal values are one value; what stands for several of the family is no better than the next of it.
        near(Family::new([0.02, 0.02, 0.5]).adjusted(0.02), 0.03, 1e-12);
        near(family.adjusted(0.025), 0.04, 1e-12);
        near(family.adjusted(0.9), 0.9, 1e-12);
        assert_eq!(Family::default().adjusted(0.5), 0.5);
    }

    #[test]
    fn d12_unequal_weights_are_fewer_samples() {
        let (weight, squares) = (30.0 * 100.0 + 10.0 * 400.0, 30.0 * 100.0f64.powi(2) + 10.0 * 400.0f64.powi(2));
        near(kish(weight, squares).unwrap(), 25.789, 5e-4);
        assert_eq!(kish(0.0, 0.0), None);
    }

    #[test]
    fn runs_that_spread_more_than_samples_do_are_fewer_samples() {
        // Shares of 10 % and 20 %: χ² = 2 · 5² / (100 · 0.15 · 0.85) with one degree of freedom.
        near(over_dispersion(&[(10.0, 100.0), (20.0, 100.0)]), 50.0 / 12.75, 1e-9);
        assert_eq!(over_dispersion(&[(10.0, 100.0), (10.0, 100.0)]), 1.0);
        assert_eq!(over_dispersion(&[(10.0, 100.0)]), 1.0);
        assert_eq!(over_dispersion(&[(0.0, 100.0), (0.0, 100.0)]), 1.0);
    }
}

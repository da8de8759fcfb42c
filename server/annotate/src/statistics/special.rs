//! The few special functions that exact tests need, to about twelve digits.

/// Coefficients of Lanczos's series for the gamma function (g = 7, nine terms).
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// The natural logarithm of the gamma function, for positive arguments.
pub(super) fn ln_gamma(x: f64) -> f64 {
    if x < 0.5 {
        // The reflection formula.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let series = LANCZOS.iter().enumerate().skip(1).fold(LANCZOS[0], |sum, (i, c)| sum + c / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + series.ln()
}

/// The logarithm of the number of ways to choose `k` of `n`.
pub(super) fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

/// The regularized incomplete beta function I_x(a, b), for positive `a` and `b` and `x` in 0..=1.
pub(super) fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges quickly on the near side of the mean; the other side is the complement.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, evaluated from the front (Lentz's method).
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const MOST_TERMS: u32 = 100_000;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The `x` in 0..=1 with I_x(a, b) = `share`.
pub(super) fn beta_quantile(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Each step gains a binary digit; more than a double has are in vain.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beta(middle, a, b) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The probability of |Z| ≥ `z` for a standard normal Z: `erfc(z / √2)` for z ≥ 0.
pub(super) fn two_sided_normal(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    if x < 2.5 { 1.0 - erf_series(x) } else { erfc_fraction(x) }
}

/// erf by its power series, for small arguments.
fn erf_series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        let addend = term / f64::from(2 * n + 1);
        sum += addend;
        if addend.abs() < 1e-17 * sum.abs() {
            break;
        }
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// erfc by its continued fraction, for large arguments.
fn erfc_fraction(x: f64) -> f64 {
    let tail = (1..=80).rev().fold(x, |tail, n| x + f64::from(n) / 2.0 / tail);
    (-x * x).exp() / (tail * std::f64::consts::PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-10 * expected.abs().max(1e-3), "{value}, expected {expected}");
    }

    #[test]
    fn known_values() {
        close(ln_gamma(5.0), 24f64.ln());
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
        close(ln_choose(52.0, 5.0), 2_598_960f64.ln());
        // I_x(1, b) = 1 − (1 − x)^b, and I_x(a, 1) = x^a.
        close(beta(0.3, 1.0, 4.0), 1.0 - 0.7f64.powi(4));
        close(beta(0.9, 7.0, 1.0), 0.9f64.powi(7));
        close(beta_quantile(0.5, 3.0, 3.0), 0.5);
        // Tables of the normal distribution.
        close(two_sided_normal(1.959_963_984_540_054), 0.05);
        close(two_sided_normal(3.290_526_731_491_894), 0.001);
        close(two_sided_normal(4.891_638_475_698_59), 1e-6);
        close(two_sided_normal(0.0), 1.0);
    }
}

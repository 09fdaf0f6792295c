//! Statistics over seeds and flows: means, confidence intervals, Jain's index, covariance ellipses.
//!
//! Only `+ - * /` and `sqrt` on floats, so that the same runs give the same bits on every machine.

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Sample standard deviation (divisor `n - 1`); `None` below two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` below two values.
pub fn ci95(values: &[f64]) -> Option<f64> {
    let deviation = deviation(values)?;
    Some(t95(values.len() - 1) * deviation / (values.len() as f64).sqrt())
}

/// Mean and 95 % interval of the finite `values`; a run without the figure does not count.
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    let known: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    Estimate { mean: mean(&known).unwrap_or(f64::NAN), ci95: ci95(&known), count: known.len() }
}

/// Summary of one figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean; NaN if no seed has the figure.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` below two seeds.
    pub ci95: Option<f64>,
    /// Seeds that have the figure.
    pub count: usize,
}

/// Jain's fairness index `(sum x)^2 / (n sum x^2)`, from `1/n` to 1; `None` without values or if all are zero.
///
/// Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    ratio(sum * sum, values.len() as f64 * squares)
}

/// `part / whole`; `None` if `whole` is zero or either is not finite.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    let ratio = part / whole;
    (whole != 0.0 && ratio.is_finite()).then_some(ratio)
}

/// Mean of `(value, weight)` pairs; `None` if all weights are zero.
pub fn weighted_mean(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weight) = pairs
        .into_iter()
        .fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + value * weight, total + weight));
    ratio(sum, weight)
}

/// The 1-sigma ellipse of a cloud of points: its mean and scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// Mean of the points.
    pub centre: (f64, f64),
    /// Two conjugate half diameters: the outline is `centre + cos(t) axes[0] + sin(t) axes[1]`.
    pub axes: [(f64, f64); 2],
}

impl Ellipse {
    /// From the sample covariance of the points; `None` below two points.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let (x, y) = (mean(&xs)?, mean(&ys)?);
        let (sx, sy) = (deviation(&xs)?, deviation(&ys)?);
        let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let covariance = products / (points.len() - 1) as f64;
        // The Cholesky factor of the covariance. Unlike its eigenvectors it is not affected by one axis being in hundredths (of a
        // second) and the other in millions (of bits per second).
        let correlation = ratio(covariance, sx * sy).unwrap_or(0.0).clamp(-1.0, 1.0);
        let rest = (1.0 - correlation * correlation).sqrt();
        Some(Self { centre: (x, y), axes: [(sx, correlation * sy), (0.0, rest * sy)] })
    }

    /// `count` points along the outline.
    pub fn outline(&self, count: usize) -> Vec<(f64, f64)> {
        (0..count)
            .map(|step| {
                let turn = core::f64::consts::TAU * step as f64 / count as f64;
                let (cos, sin) = (libm::cos(turn), libm::sin(turn));
                (
                    self.centre.0 + cos * self.axes[0].0 + sin * self.axes[1].0,
                    self.centre.1 + cos * self.axes[0].1 + sin * self.axes[1].1,
                )
            })
            .collect()
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom; infinite for none.
fn t95(freedom: usize) -> f64 {
    /// One to thirty degrees; Abramowitz and Stegun, Table 26.10.
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        _ => {
            // Expansion around the normal quantile; Abramowitz and Stegun, Eq. 26.7.5.
            const Z: f64 = 1.959_963_984_540_054;
            let n = freedom as f64;
            let (z3, z5) = (Z * Z * Z, Z * Z * Z * Z * Z);
            Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interval_uses_students_t() {
        // Five values 1..5: mean 3, s = sqrt(2.5), t(4) = 2.776.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(mean(&values), Some(3.0));
        assert_eq!(deviation(&values), Some(2.5_f64.sqrt()));
        let expected = 2.776 * (2.5_f64 / 5.0).sqrt();
        assert!((ci95(&values).unwrap() - expected).abs() < 1e-12);
        assert_eq!((mean(&[]), deviation(&[1.0]), ci95(&[1.0])), (None, None, None));
    }

    #[test]
    fn student_quantile_is_continuous_from_table_to_normal() {
        // Abramowitz and Stegun, Table 26.10: 40, 60 and 120 degrees.
        for (freedom, expected) in [(1, 12.706), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((t95(freedom) - expected).abs() < 0.0006, "{freedom}");
        }
        assert!((t95(1_000_000) - 1.96).abs() < 1e-3);
        assert!((1..200).all(|freedom| t95(freedom + 1) < t95(freedom)));
    }

    #[test]
    fn estimate_leaves_out_what_is_missing() {
        let some = estimate([1.0, f64::NAN, 3.0]);
        assert_eq!((some.mean, some.count), (2.0, 2));
        let none = estimate([f64::NAN]);
        assert!(none.mean.is_nan() && none.ci95.is_none());
    }

    #[test]
    fn fairness_at_its_edges() {
        for (case, rates, expected) in [
            ("equal", vec![5.0, 5.0, 5.0], Some(1.0)),
            ("one takes all", vec![9.0, 0.0, 0.0], Some(1.0 / 3.0)),
            ("none", vec![], None),
            ("all idle", vec![0.0, 0.0], None),
        ] {
            assert_eq!(jain(&rates), expected, "{case}");
        }
    }

    #[test]
    fn ellipse_of_a_line_is_flat_and_lies_along_it() {
        let ellipse = Ellipse::of(&[(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)]).unwrap();
        assert_eq!(ellipse.centre, (1.0, 2.0));
        // Deviations are 1 and 2.
        assert_eq!(ellipse.axes, [(1.0, 2.0), (0.0, 0.0)]);
        assert_eq!(Ellipse::of(&[(1.0, 1.0)]), None);
        let still = Ellipse::of(&[(1.0, 1.0), (1.0, 1.0)]).unwrap();
        assert_eq!(still.axes, [(0.0, 0.0); 2]);
    }

    #[test]
    fn ellipse_is_independent_of_units() {
        let small = Ellipse::of(&[(0.0, 0.0), (0.001, 1e7), (0.002, -1e7), (0.001, 0.0)]).unwrap();
        let even = Ellipse::of(&[(0.0, 0.0), (1.0, 1.0), (2.0, -1.0), (1.0, 0.0)]).unwrap();
        for (small, even) in small.axes.iter().zip(&even.axes) {
            assert!((small.0 / 0.001 - even.0).abs() < 1e-9 && (small.1 / 1e7 - even.1).abs() < 1e-9);
        }
    }

    proptest! {
        #[test]
        fn fairness_lies_between_one_of_n_and_one(rates in prop::collection::vec(0.001..1e9, 1..20)) {
            let index = jain(&rates).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / rates.len() as f64 - 1e-12);
        }

        /// `axes` times its transpose is the covariance, so each direction keeps its variance.
        #[test]
        fn ellipse_keeps_the_variance(points in prop::collection::vec((-1e3..1e3, -1e3..1e3), 2..30)) {
            let [a, b] = Ellipse::of(&points).unwrap().axes;
            for direction in [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.8, -0.6)] {
                let along = |v: (f64, f64)| v.0 * direction.0 + v.1 * direction.1;
                let projected: Vec<f64> = points.iter().copied().map(along).collect();
                let variance = deviation(&projected).unwrap().powi(2);
                prop_assert!((along(a).powi(2) + along(b).powi(2) - variance).abs() <= 1e-6 * (1.0 + variance));
            }
        }
    }
}

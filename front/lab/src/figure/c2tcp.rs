//! The mean RTT over C2TCP's bounds (001): equations 14 and 15, with the places `rtt` (of the empty path), `pps` (packets
//! per second) and `alpha`.

use super::scope::Scope;
use super::{Entry, Figure, needs};
use crate::figures::Quantity::Plain;

pub(super) const FIGURES: &[Entry] = &[
    needs("rtt_over_eq14", Plain, "Mean RTT over the bound of C2TCP's equation 14.", |scope| {
        Ok(mean_rtt(scope) / equation_14(scope)?)
    }),
    needs("rtt_over_eq15", Plain, "Mean RTT over the bound of C2TCP's equation 15.", |scope| {
        Ok(mean_rtt(scope) / equation_15(scope)?)
    }),
    needs(
        "rtt_over_eq14_deaf",
        Plain,
        "The same as `rtt_over_eq14`; none where the deaf second alone exceeds the bound, which no alpha could keep then.",
        |scope| beyond_deaf_second(scope, equation_14(scope)?),
    ),
    needs(
        "rtt_over_eq15_deaf",
        Plain,
        "The same as `rtt_over_eq15`; none where the deaf second alone exceeds the bound, which no alpha could keep then.",
        |scope| beyond_deaf_second(scope, equation_15(scope)?),
    ),
    needs(
        "rtt_over_deaf_second",
        Plain,
        "Mean RTT over that of the deaf second, where that exceeds the bound of equation 15; else none.",
        |scope| {
            let own = rtt_of_deaf_second(scope)?;
            Ok(if own >= equation_15(scope)? { mean_rtt(scope) / own } else { f64::NAN })
        },
    ),
];

fn mean_rtt(scope: &Scope<'_>) -> f64 {
    Figure::named("rtt_mean").map_or(f64::NAN, |figure| figure.single(scope))
}

fn equation_14(scope: &Scope<'_>) -> Result<f64, String> {
    let bw = scope.place("pps")?;
    Ok(scope.place("alpha")? * (scope.place("rtt")? + 1.0 / bw + 0.5 / bw))
}

fn equation_15(scope: &Scope<'_>) -> Result<f64, String> {
    Ok(1.5 * scope.place("alpha")? * (scope.place("rtt")? + 1.0 / scope.place("pps")?))
}

/// Mean RTT in seconds of a deaf second of a link that sends `bw` packets/s, where the window begins near zero. CUBIC's
/// Reno-friendly growth is 8/15 of a segment per window acknowledged, `dW/dt = 8/15 bw / W`, so that `W = sqrt(16/15 bw t)`; the
/// RTT is `W / bw`, and its mean over the second is two thirds of its last value. It depends neither on alpha nor on the RTT of the
/// empty path.
fn rtt_of_deaf_second(scope: &Scope<'_>) -> Result<f64, String> {
    Ok(2.0 / 3.0 * (16.0 / 15.0 / scope.place("pps")?).sqrt())
}

fn beyond_deaf_second(scope: &Scope<'_>, bound: f64) -> Result<f64, String> {
    Ok(if rtt_of_deaf_second(scope)? >= bound { f64::NAN } else { mean_rtt(scope) / bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Flows, Values, Window};
    use crate::synthetic;
    use ranpace_units::Span;

    /// A figure of a flow with this mean RTT in µs.
    fn figure(name: &str, rtt_us: u64, places: [(&str, &str); 3]) -> f64 {
        let mut run = synthetic::run("cubic", 1);
        run.flows[0].rtt.mean = Span::from_micros(rtt_us);
        let places: Values =
            places.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let scope = Scope::new(&run, &places, &Flows::All, Window::default());
        Figure::named(name).unwrap().single(&scope)
    }

    #[test]
    fn bounds_follow_the_equations() {
        // 500 packets/s, 18 ms and a packet of 2 ms: MINRTT 20 ms. Eq. 14 with alpha 2: 2 (20 + 1) = 42 ms; eq. 15: 60 ms.
        let places = [("rtt", "18ms"), ("pps", "500"), ("alpha", "2")];
        assert!((figure("rtt_over_eq14", 30_000, places) - 30.0 / 42.0).abs() < 1e-9);
        assert!((figure("rtt_over_eq15", 30_000, places) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn bounds_are_judged_only_above_the_deaf_second() {
        // At 500 packets/s a deaf second has 2/3 sqrt(16 / 7500) = 30.8 ms: more than equation 15 with 10 ms and alpha 1.25
        // (22.5 ms), less than with alpha 2 (36 ms).
        let places = |alpha| [("rtt", "10ms"), ("pps", "500"), ("alpha", alpha)];
        assert!(figure("rtt_over_eq15_deaf", 30_800, places("1.25")).is_nan());
        assert!((figure("rtt_over_eq15_deaf", 18_000, places("2")) - 0.5).abs() < 1e-9);
        let deaf = 2.0 / 3.0 * (16.0f64 / 7500.0).sqrt();
        assert!((figure("rtt_over_deaf_second", 30_800, places("1.25")) - 0.0308 / deaf).abs() < 1e-9);
        assert!(figure("rtt_over_deaf_second", 18_000, places("2")).is_nan());
    }
}

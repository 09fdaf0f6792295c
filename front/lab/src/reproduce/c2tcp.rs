//! C2TCP's detector (001), driven sample by sample through the interface that an endpoint uses.

use ranpace_cc::{Algorithm, Context, Sample, State, Window};
use ranpace_units::{Bytes, Span, Time};

use super::measured::Measured;
use super::results::Absent;

/// The RTTs of Fig. 2's shape, in ms and 12 ms apart: below the setpoint of 40 ms, above it for longer than an
/// interval, a dip, above it for less than an interval, below it. The paper gives no values; these are ours.
const FIG_2: [u64; 12] = [20, 25, 60, 60, 60, 60, 60, 60, 30, 60, 60, 25];

/// C2TCP's classification of [`FIG_2`], sample by sample.
fn judged() -> Result<Vec<&'static str>, Absent> {
    let algorithm: Algorithm = "cubic+c2tcp:tuner=off:alpha=2:clock=ns:boost=real:clock=ns:kernel_compat=off"
        .parse()
        .map_err(|error: ranpace_cc::AlgorithmError| Absent::Nothing(error.to_string()))?;
    let mut control = algorithm.build(1);
    let mut window = Window::new(10.0);
    let context = |now: Time| Context {
        now,
        mss: Bytes::new(1448),
        wire: Bytes::new(1500),
        srtt: Span::from_millis(20),
        min_rtt: Span::from_millis(20),
        in_flight: 10,
        delivered: 0,
        lost: 0,
        next_packet: 0,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    };
    control.on_start(&context(Time::ZERO), &mut window);
    Ok(FIG_2
        .iter()
        .zip(1..)
        .map(|(rtt, index)| {
            let sample = Sample {
                delivered: 1,
                bytes: Bytes::new(1448),
                rtt: Some(Span::from_millis(*rtt)),
                one_way: None,
                in_flight_at_send: 10,
            };
            control.on_sample(&context(Time::from_millis(1_000 + 12 * index)), &mut window, &sample);
            let mut condition = "none";
            control.inspect(&mut |name, value| {
                if name == "condition" {
                    condition = if value == 0.0 {
                        "Good"
                    } else if value == 1.0 {
                        "Normal"
                    } else {
                        "Bad"
                    };
                }
            });
            condition
        })
        .collect())
}

/// The conditions that it passes through: the value is 1 if they are as published.
pub(super) fn conditions() -> Result<Measured, Absent> {
    let mut phases = judged()?;
    phases.dedup();
    let is_as_published = phases == ["Good", "Normal", "Bad", "Good", "Normal", "Good"];
    Ok(Measured { value: f64::from(u8::from(is_as_published)), text: phases.join(", ") })
}

/// Number of RTTs that are Bad in one place and Normal in another.
pub(super) fn history() -> Result<Measured, Absent> {
    let judged = judged()?;
    let of = |rtt: u64, condition: &str| {
        FIG_2.iter().zip(&judged).any(|(own, judged)| *own == rtt && *judged == condition)
    };
    let mut rtts = FIG_2.to_vec();
    rtts.sort_unstable();
    rtts.dedup();
    rtts.retain(|rtt| of(*rtt, "Bad") && of(*rtt, "Normal"));
    let text = rtts.iter().map(|rtt| format!("{rtt} ms is Bad in one stretch, Normal in the other"));
    Ok(Measured { value: rtts.len() as f64, text: text.collect::<Vec<_>>().join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_fig_2_are_the_published_ones() {
        let measured = conditions().unwrap();
        assert_eq!((measured.value, measured.text.as_str()), (1.0, "Good, Normal, Bad, Good, Normal, Good"));
        assert_eq!(history().unwrap().value, 1.0);
    }
}

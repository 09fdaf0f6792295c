//! Counts how many reports of a modem are close to neither of the two before, from standing to driving: correct reports and random ones.
//!
//! `cargo run --release -p ranpace-sim --example sigma_coherence`
//!
//! What SIGMA counts as contradicting reports: docs/algorithms/sigma.md, "When the modem says too little".
#![allow(clippy::print_stdout)]

use ranpace_sim::Simulation;

const SEEDS: u64 = 3;

/// Goodput in Mbit/s, contradictions, and the share of reports in each window that were close to neither.
fn play(cc: &str, fading: &str, place: u32, content: &str, seed: u64) -> (f64, f64, Vec<f64>) {
    let text = format!(
        "duration = \"20s\"\nwarmup = \"5s\"\nseed = {seed}\n\
         [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"16ms\"\nduplex = true\n\
         [[cell]]\nhost = \"mast\"\npreset = \"lte\"\n{fading}\n\
         [[user]]\nname = \"phone\"\nposition = [{place}, 0]\n\
         [[flow]]\nfrom = \"phone\"\nto = \"server\"\ncc = \"{cc}\"\n[modem]\ncontent = \"{content}\"\n"
    );
    let scenario = ranpace_scenario::parse(&text, "coherence.toml", &mut ())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let flow = &Simulation::new(&scenario).run().flows[0];
    let column = |name: &str| flow.series.get(name).unwrap_or(&[]);
    // A row every 100 ms: the windows are longer, so that none is missed.
    let shares = column("state_reports_unlike").iter().copied().filter(|share| !share.is_nan());
    let contradictions = column("state_contradictions").last().copied().unwrap_or(0.0);
    (flow.goodput.as_f64() / 1e6, contradictions, shares.collect())
}

fn main() {
    println!(
        "| fading | from the mast | reports | like neither, mean | most | contradictions | SIGMA | CUBIC |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (profile, kmh) in [("epa", 0), ("epa", 3), ("epa", 30), ("epa", 120), ("etu", 30), ("etu", 120)] {
        let fading = format!("fading = \"{profile}\"\nfading_speed = \"{kmh}km/h\"");
        for place in [200, 700] {
            for content in ["measured", "random"] {
                let (mut all, mut contradictions, mut rates) = (Vec::new(), 0.0, [0.0; 2]);
                for seed in 1..=SEEDS {
                    let (rate, times, shares) = play("sigma", &fading, place, content, seed);
                    all.extend(shares);
                    contradictions += times;
                    rates[0] += rate / SEEDS as f64;
                    rates[1] += play("cubic", &fading, place, content, seed).0 / SEEDS as f64;
                }
                let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
                let most = all.iter().copied().fold(0.0, f64::max);
                println!(
                    "| {profile}, {kmh} km/h | {place} m | {content} | {:.1} % | {:.1} % | {contradictions} | {:.1} | {:.1} |",
                    100.0 * mean,
                    100.0 * most,
                    rates[0],
                    rates[1]
                );
            }
        }
    }
}

//! The grid on which the guard of the client-driven controls is judged: correct reports, with the guard, without it, and CUBIC.
//!
//! `cargo run --release -p ranpace-sim --example guard_grid -- [PART...] [--every N] [--threads N] [--keep FILE] [--runs]`
//!
//! Parts: `alone`, `cubic` (beside one), `bbr` (beside one), `cells`, and `traces` for those whose files are in the folder named by
//! RANPACE_TRACES (skipped if it is not set); without any, all but `traces`. `--every N` runs each N-th point, `--keep FILE` keeps
//! the runs that do not depend on the guard for the next time, `--runs` shows each run.
//!
//! Criteria: docs/client-driven.md, "When a report is not believed".
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ranpace_link::Trace;
use ranpace_scenario::TraceSource;
use ranpace_sim::Simulation;

/// Controls whose receivers measure what arrives, and those whose receivers read the modem.
const MEASURING: [&str; 2] = ["cdbe", "cdbev2"];
const READING: [&str; 2] = ["dcic", "cqic-s"];
const TRACES: [&str; 6] = [
    "mahimahi/ATT-LTE-driving-2016.down",
    "mahimahi/ATT-LTE-driving-2016.up",
    "nyc-2018/downlink-3g-no-cross-times-2",
    "nyc-2018/uplink-3g-no-cross-subway.pps",
    "nyc-2018/uplink-3g-with-cross-subway",
    "nyc-2019/trace-1553201711-ts-walking",
];

/// A point of the grid; its scenario lacks the control's name.
struct Point {
    part: &'static str,
    name: String,
    text: String,
    controls: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Played {
    mbit: f64,
    delay_ms: f64,
    loss: f64,
    /// Part of the time in which the control set the window, and the last reason why it did not.
    driven: f64,
    reason: f64,
}

struct Files;

impl TraceSource for Files {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        let folder = std::env::var("RANPACE_TRACES").map_err(|error| error.to_string())?;
        let text = fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string())?;
        let millis: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        Trace::from_millis(millis.map_err(|error| error.to_string())?)
            .map(Arc::new)
            .map_err(|error| error.to_string())
    }
}

fn play(text: &str) -> Played {
    let scenario = ranpace_scenario::parse(text, "grid.toml", &mut Files)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let result = Simulation::new(&scenario).run();
    let flow = &result.flows[0];
    let column = |name: &str| flow.series.get(name).unwrap_or(&[]);
    let driven = column("state_guard_driven");
    Played {
        mbit: flow.goodput.as_f64() / 1e6,
        delay_ms: flow.queueing_delay.mean.as_secs_f64() * 1e3,
        loss: flow.loss_rate,
        driven: driven.iter().filter(|value| **value == 1.0).count() as f64 / driven.len().max(1) as f64,
        reason: column("state_guard_reason").last().copied().unwrap_or(0.0),
    }
}

fn links(part: &'static str, rival: &str) -> Vec<Point> {
    let mut points = Vec::new();
    for (rate, seconds) in [(1, 30), (5, 30), (20, 30), (100, 20), (500, 10)] {
        for rtt in [20, 60, 150, 300] {
            for bdp in [0.5, 1.0, 4.0] {
                for loss in [0.0, 0.01] {
                    for ack_every in [1, 2] {
                        // A buffer of less than four packets is not considered.
                        let buffer = (bdp * f64::from(rate * rtt) * 125.0).max(6000.0);
                        let (half, from) =
                            (f64::from(rtt) / 2.0, if rival.is_empty() { 0 } else { seconds / 5 });
                        let tcp = format!("ack_every = {ack_every}\nreceive_buffer_max = \"256MB\"");
                        let mut text = format!(
                            "duration = \"{seconds}s\"\nwarmup = \"{from}s\"\n\
                             [[link]]\nname = \"down\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{half}ms\"\n\
                             loss = {loss}\nqueue = {{ kind = \"droptail\", limit = \"{buffer:.0}B\" }}\n\
                             [[link]]\nname = \"up\"\nfrom = \"b\"\nto = \"a\"\nrate = \"unlimited\"\ndelay = \"{half}ms\"\n\
                             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"CONTROL\"\n{tcp}\n"
                        );
                        if !rival.is_empty() {
                            let start = seconds / 10;
                            let _ = write!(
                                text,
                                "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"{rival}\"\nstart = \"{start}s\"\n{tcp}\n"
                            );
                        }
                        points.push(Point {
                            part,
                            name: format!("{rate}M {rtt}ms {bdp}bdp {loss} ack{ack_every}"),
                            text,
                            controls: MEASURING.to_vec(),
                        });
                    }
                }
            }
        }
    }
    points
}

fn cells() -> Vec<Point> {
    let mut points = Vec::new();
    for (preset, place, seconds) in [("lte", "[300, 0]", 30), ("nr", "[150, 0]", 10)] {
        for (others, more) in [
            ("", ""),
            (
                " a neighbour",
                "[[user]]\nname = \"other\"\nposition = [150, 100]\n[[flow]]\nfrom = \"server\"\nto = \"other\"\ncc = \"cubic\"\nworkload = { kind = \"web\", page = \"2MB\", interval = \"5s\" }\n",
            ),
        ] {
            for seed in [1, 2] {
                let text = format!(
                    "duration = \"{seconds}s\"\nseed = {seed}\n\
                     [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"10Gbit/s\"\ndelay = \"11ms\"\nduplex = true\n\
                     [[cell]]\nhost = \"mast\"\npreset = \"{preset}\"\n[[user]]\nname = \"phone\"\nposition = {place}\n\
                     [[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"CONTROL\"\n{more}"
                );
                let controls = MEASURING.into_iter().chain(READING).collect();
                points.push(Point {
                    part: "cells",
                    name: format!("{preset}{others} seed {seed}"),
                    text,
                    controls,
                });
            }
        }
    }
    points
}

fn traces() -> Vec<Point> {
    let Ok(folder) = std::env::var("RANPACE_TRACES") else { return Vec::new() };
    let there = TRACES.into_iter().filter(|name| fs::exists(format!("{folder}/{name}")).unwrap_or(false));
    let point = |name: &str| Point {
        part: "traces",
        name: name.to_owned(),
        text: format!(
            "duration = \"60s\"\n\
             [[link]]\nname = \"down\"\nfrom = \"a\"\nto = \"b\"\ntrace = \"{name}\"\ndelay = \"20ms\"\nqueue = {{ kind = \"droptail\", limit = \"2MB\" }}\n\
             [[link]]\nname = \"up\"\nfrom = \"b\"\nto = \"a\"\nrate = \"48Mbit/s\"\ndelay = \"20ms\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"CONTROL\"\n"
        ),
        controls: MEASURING.to_vec(),
    };
    there.map(point).collect()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut parts, mut every, mut threads, mut keep, mut runs) = (Vec::new(), 1, 1, None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--every" => every = args.next().unwrap().parse().unwrap(),
            "--threads" => threads = args.next().unwrap().parse().unwrap(),
            "--keep" => keep = args.next(),
            "--runs" => runs = true,
            part => parts.push(part.to_owned()),
        }
    }
    let all = [links("alone", ""), links("cubic", "cubic"), links("bbr", "bbr1"), cells(), traces()];
    let wanted = |point: &Point| match parts.as_slice() {
        [] => point.part != "traces",
        parts => parts.iter().any(|part| part == point.part),
    };
    let points: Vec<Point> = all
        .into_iter()
        .flat_map(|part| {
            let stride = if part.len() > every { every } else { 1 };
            part.into_iter().step_by(stride)
        })
        .filter(wanted)
        .collect();

    // Earlier runs without the guard.
    let kept: HashMap<String, Played> =
        keep.as_ref().and_then(|file| fs::read_to_string(file).ok()).map_or_else(HashMap::new, |text| {
            let line = |line: &str| {
                let [key, mbit, delay_ms, loss] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
                let number = |text: &str| text.parse().ok();
                let played = Played {
                    mbit: number(mbit)?,
                    delay_ms: number(delay_ms)?,
                    loss: number(loss)?,
                    ..Played::default()
                };
                Some((key.to_owned(), played))
            };
            text.lines().filter_map(line).collect()
        });
    let mut jobs: Vec<(String, String)> = Vec::new();
    for point in &points {
        let guarded = point.controls.iter().flat_map(|cc| [(*cc).to_owned(), format!("{cc}:guard=off")]);
        for cc in std::iter::once("cubic".to_owned()).chain(guarded) {
            jobs.push((format!("{} {} {cc}", point.part, point.name), point.text.replace("CONTROL", &cc)));
        }
    }
    let (next, played) = (AtomicUsize::new(0), Mutex::new(kept));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((key, text)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !played.lock().unwrap().contains_key(key) {
                        let found = play(text);
                        played.lock().unwrap().insert(key.clone(), found);
                    }
                }
            });
        }
    });
    let played = played.into_inner().unwrap();
    if let Some(file) = keep {
        let mut lines: Vec<String> = played
            .iter()
            .filter(|(key, _)| key.ends_with(" cubic") || key.ends_with("guard=off"))
            .map(|(key, found)| format!("{key}\t{}\t{}\t{}\n", found.mbit, found.delay_ms, found.loss))
            .collect();
        lines.sort();
        fs::write(file, lines.concat()).unwrap();
    }
    show(&points, &played, runs);
}

fn show(points: &[Point], played: &HashMap<String, Played>, runs: bool) {
    for part in ["alone", "cubic", "bbr", "cells", "traces"] {
        for cc in MEASURING.into_iter().chain(READING) {
            let mut rows: Vec<(f64, String)> = Vec::new();
            for point in points.iter().filter(|point| point.part == part && point.controls.contains(&cc)) {
                let of = |cc: &str| played[&format!("{} {} {cc}", point.part, point.name)];
                let (cubic, on, off) = (of("cubic"), of(cc), of(&format!("{cc}:guard=off")));
                let wanted = match part {
                    "cubic" | "bbr" => off.mbit.min(0.8 * cubic.mbit),
                    _ => off.mbit.max(cubic.mbit),
                };
                let ratio = on.mbit / wanted.max(1e-6);
                rows.push((
                    ratio,
                    format!(
                        "{ratio:5.2} {part} {cc:7} {:36} on {:8.3} ({:6.1} ms, {:.1} %) off {:8.3} ({:6.1} ms, {:.1} %) cubic {:8.3} ({:6.1} ms)  driven {:.2} reason {}",
                        point.name, on.mbit, on.delay_ms, 100.0 * on.loss, off.mbit, off.delay_ms, 100.0 * off.loss, cubic.mbit, cubic.delay_ms, on.driven, on.reason
                    ),
                ));
            }
            if rows.is_empty() {
                continue;
            }
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let share = |least: f64| {
                100.0 * rows.iter().filter(|(ratio, _)| *ratio >= least).count() as f64 / rows.len() as f64
            };
            for (_, row) in rows.iter().take(if runs { rows.len() } else { 5 }) {
                println!("{row}");
            }
            println!(
                "== {part} {cc}: {} points, {:.1} % at least 1, {:.1} % at least 0.9, {:.1} % at least 0.7, least {:.3}",
                rows.len(),
                share(1.0),
                share(0.9),
                share(0.7),
                rows[0].0
            );
        }
    }
}

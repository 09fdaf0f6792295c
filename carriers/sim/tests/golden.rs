//! Results are identical to the bit in every build: debug or release, this machine or another, before and after an optimisation.
//!
//! A change of behaviour changes these numbers and has to be declared: the failing test prints the new ones.

mod common;

use common::{Path, play};
use ranpace_scenario::cells::PRESETS;
use ranpace_scenario::presets::{CellRunSpec, cell};
use ranpace_sim::{FlowTotals, RunResult};

/// FNV-1a, 64 bits, over everything but speed figures. Debug output distinguishes floats by every bit.
fn fingerprint(mut result: RunResult) -> u64 {
    result.events = 0;
    // Figures added later are left out of the fingerprints.
    for flow in &mut result.flows {
        flow.totals = FlowTotals::default();
    }
    for user in &mut result.users {
        (user.downlink.rlc_sent_again, user.uplink.rlc_sent_again) = (0, 0);
    }
    format!("{result:?}")
        .replace("cells: [], users: [], ", "")
        .replace(&format!("totals: {:?}, ", FlowTotals::default()), "")
        .replace("rlc_sent_again: 0, ", "")
        .replace("lost: None, split: None, ", "")
        .replace("feed: None, ", "")
        .replace("peps: [], ", "")
        .replace(", handed_over: None", "")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// A cell with its surroundings, for two seconds.
fn preset(name: &str) -> String {
    let preset = PRESETS.iter().find(|preset| preset.name == name).expect("it is there");
    let cubic = "cubic".parse().expect("it is there");
    let mut spec = CellRunSpec::new(preset, &cubic);
    spec.duration = ranpace_units::Span::from_secs(2);
    cell(&spec)
}

#[test]
fn every_build_gives_the_same_bits() {
    let dumbbell = Path {
        rate: "20Mbit/s",
        queue: r#"{ kind = "droptail", limit = "150KB" }"#,
        top: "duration = \"12s\"\nseed = 7",
        ..Path::default()
    };
    let troubled = Path {
        queue: r#"{ kind = "fq_codel", ecn = true }"#,
        link: "loss = { kind = \"gilbert_elliott\", p = 0.002, r = 0.3 }\njitter = { kind = \"normal\", mean = \"3ms\", deviation = \"1ms\" }\nreorder = { probability = 0.01, delay = \"4ms\" }",
        top: "duration = \"6s\"\nwarmup = \"1s\"\nseed = 11",
        ..Path::default()
    };
    let each = [
        "newreno",
        "cubic",
        "bbr1",
        "bbr-zhong",
        "vegas",
        "veno",
        "westwood",
        "yeah",
        "scalable",
        "c2tcp",
        "vivace",
        "sprout",
        "verus",
    ];
    let flows = |names: &[&str]| {
        names.iter().map(|cc| format!("cc = \"{cc}\"\nstagger = \"100ms\"\ncount = 1")).collect::<Vec<_>>()
    };
    let texts = [
        ("loss-based", dumbbell.text(&["cc = \"cubic\"", "cc = \"newreno\"\nstart = \"2s\""])),
        ("delay-based", dumbbell.text(&["cc = \"bbr1\"", "cc = \"vegas\"\nstart = \"2s\""])),
        ("every control", troubled.text(&flows(&each).iter().map(String::as_str).collect::<Vec<_>>())),
        (
            "workloads over PIE",
            Path { queue: r#"{ kind = "pie" }"#, ..dumbbell }.text(&[
                "cc = \"cubic\"\nworkload = { kind = \"web\", page = \"80KB\" }",
                "cc = \"c2tcp\"\nworkload = { kind = \"repeat\", size = \"30KB\", pause = \"70ms\" }",
                "transport = \"udp\"\nworkload = { kind = \"ppbp\", rate = \"4Mbit/s\" }",
            ]),
        ),
        (
            "trace",
            dumbbell
                .text(&["cc = \"sprout\"", "cc = \"cubic\""])
                .replace("rate = \"20Mbit/s\"", "trace = \"bursty\"\nscale = 1.3"),
        ),
        ("cell of LTE", preset("zhong-lte-ch6")),
        ("cell of NR", preset("nr")),
        ("millimetre waves", preset("diarra-mmwave-nlos")),
    ];
    let found: Vec<_> =
        texts.iter().map(|(name, text)| (*name, format!("{:016x}", fingerprint(play(text))))).collect();
    let found: Vec<_> = found.iter().map(|(name, hash)| (*name, hash.as_str())).collect();
    assert_eq!(found, GOLDEN);
}

const GOLDEN: [(&str, &str); 8] = [
    ("loss-based", "d173554163b7e215"),
    ("delay-based", "5be34716a1486ab9"),
    ("every control", "f7484709afef575f"),
    ("workloads over PIE", "9bd2f0222f48f9d8"),
    ("trace", "c5a08bd41046eb6d"),
    ("cell of LTE", "73dafce32b027c22"),
    ("cell of NR", "b36b497791c570f4"),
    ("millimetre waves", "017e360b86292a64"),
];

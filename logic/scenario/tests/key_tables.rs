//! The tables of keys in the guide equal those of the declarations. `RANPACE_WRITE_PAGES=1 cargo test -p ranpace-scenario
//! --test key_tables` rewrites them.
#![allow(clippy::unwrap_used)] // allowed in tests

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ranpace_scenario::{key_groups, key_table, parse};

const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end of keys -->";

#[test]
fn pages_show_the_keys_as_they_are_declared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let writes = std::env::var_os("RANPACE_WRITE_PAGES").is_some();
    let mut shown = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(entry.path()).unwrap();
        let fresh = with_tables(&page, &mut shown);
        if writes && fresh != page {
            fs::write(entry.path(), &fresh).unwrap();
        }
        assert!(
            writes || fresh == page,
            "{}: tables of keys differ from their declarations; RANPACE_WRITE_PAGES=1 writes them",
            entry.path().display()
        );
    }
    let all: BTreeSet<String> = key_groups().map(str::to_owned).collect();
    assert_eq!(shown, all, "each group of keys is on a page");
}

/// The page with fresh tables between its markers; `shown` collects their names.
fn with_tables(page: &str, shown: &mut BTreeSet<String>) -> String {
    let mut fresh = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->").unwrap();
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("{name}: no {END}"));
        let table = key_table(name).unwrap_or_else(|| panic!("there are no keys called {name}"));
        fresh += &format!("{before}{BEGIN}{name} -->\n{table}{END}");
        shown.insert(name.to_owned());
        rest = after;
    }
    fresh + rest
}

/// The keys of a group, from its table.
fn keys(group: &str) -> BTreeSet<String> {
    let table = key_table(group).unwrap();
    table.lines().skip(2).map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

/// The keys listed in the answer to an unknown key at the end of this text.
fn understood(text: &str) -> BTreeSet<String> {
    let error = parse(&format!("{text}zzz = 1\n"), "", &mut ()).unwrap_err().to_string();
    let about = error.lines().find(|line| line.contains("key \"zzz\"")).unwrap_or_else(|| panic!("{error}"));
    let known = about.split("expected one of ").nth(1).unwrap().split(';').next().unwrap();
    known.split(", ").map(str::to_owned).collect()
}

/// Each table accepts exactly the declared keys, and `vary` knows them.
#[test]
fn every_declared_key_is_read_and_can_be_varied() {
    const CELL: &str = "[[cell]]\nradio = \"nr\"\nduplex = \"fdd\"\n[[cell]]\nradio = \"lte\"\n";
    const CHANGE: &str =
        "[[change]]\nrate = 1\ndelay = 1\ntarget = 1\nto = 1\nforward = 1\ninterruption = 1\n";
    const QUIC: &str = "[[flow]]\ntransport = \"quic\"\n";
    let user = format!("{CELL}[[user]]\n");
    let quic = format!("{QUIC}[flow.quic]\n");
    let jitter = |kind: &str| format!("[[link]]\n[link.jitter]\nkind = {kind:?}\n");
    let loss = |kind: &str| format!("[[link]]\n[link.loss]\nkind = {kind:?}\n");
    let cell = |table: &str, kind: &str| format!("[[cell]]\n[cell.{table}]\nkind = {kind:?}\n");
    // Texts that together accept all keys of these groups.
    let cases: [(&str, &[&str], &[&str]); 33] = [
        ("link.", &["link"], &["[[link]]\n"]),
        ("flow.", &["flow", "tcp", "quic"], &["[[flow]]\n", QUIC]),
        ("flow.tcp.", &["tcp"], &["[[flow]]\n[flow.tcp]\n"]),
        ("flow.quic.", &["quic"], &[&quic]),
        ("change.", &["change"], &[CHANGE]),
        ("proxy.", &["proxy", "proxy.rapid"], &["[[proxy]]\nkind = \"rapid\"\n"]),
        ("pep.", &["pep"], &["[[pep]]\n"]),
        ("middlebox.", &["middlebox"], &["[[middlebox]]\nkind = \"drop_every\"\n"]),
        (
            "rewriter.",
            &["rewriter", "rewriter.milliproxy", "rewriter.guidance"],
            &["[[rewriter]]\nkind = \"milliproxy\"\n", "[[rewriter]]\nkind = \"guidance\"\n"],
        ),
        ("rnis.", &["rnis"], &["[rnis]\n"]),
        ("modem.", &["rnis"], &["[modem]\n"]),
        (
            "cell.",
            &["cell", "cell.air", "cell.channel", "cell.adaptation", "cell.uplink", "bearer"],
            &["[[cell]]\nradio = \"nr\"\nduplex = \"fdd\"\n", "[[cell]]\nradio = \"lte\"\n"],
        ),
        ("user.", &["user", "bearer"], &[&user]),
        ("link.jitter.", &["link.jitter"], &[&jitter("uniform"), &jitter("normal")]),
        ("link.loss.", &["link.loss"], &[&loss("random"), &loss("gilbert_elliott"), &loss("list")]),
        ("link.reorder.", &["link.reorder"], &["[[link]]\n[link.reorder]\n"]),
        (
            "cell.path_loss.",
            &["cell.path_loss"],
            &[&cell("path_loss", "log-distance"), &cell("path_loss", "cost231")],
        ),
        ("cell.sight.", &["cell.sight"], &[&cell("sight", "buildings")]),
        ("cell.shadowing.", &["cell.shadowing"], &["[[cell]]\n[cell.shadowing]\n"]),
        ("cell.fading.", &["cell.fading"], &[&cell("fading", "mmwave"), &cell("fading", "recorded")]),
        ("cell.noise.", &["cell.noise"], &["[[cell]]\n[cell.noise]\n"]),
        ("cell.noise_up.", &["cell.noise"], &["[[cell]]\n[cell.noise_up]\n"]),
        ("cell.outer_loop.", &["cell.outer_loop"], &["[[cell]]\n[cell.outer_loop]\n"]),
        ("cell.harq.", &["cell.harq"], &["[[cell]]\n[cell.harq]\n"]),
        ("cell.harq_up.", &["cell.harq"], &["[[cell]]\n[cell.harq_up]\n"]),
        ("cell.control_channels.", &["cell.control_channels"], &["[[cell]]\n[cell.control_channels]\n"]),
        ("cell.scheduler.", &["cell.scheduler"], &[&cell("scheduler", "pf")]),
        ("cell.ul_power.", &["cell.ul_power"], &[&cell("ul_power", "3gpp")]),
        ("cell.rlc_timers.", &["bearer.rlc_timers"], &["[[cell]]\n[cell.rlc_timers]\n"]),
        ("user.drop.", &["user.disc"], &[&format!("{user}[user.drop]\n")]),
        ("user.walk.", &["user.disc", "user.walk"], &[&format!("{user}[user.walk]\n")]),
        ("user.waypoints.", &["user.waypoints"], &[&format!("{user}[user.waypoints]\n")]),
        ("user.recording.", &["user.recording"], &[&format!("{user}[user.recording]\n")]),
    ];
    for (name, groups, texts) in cases {
        let read: BTreeSet<String> = texts.iter().flat_map(|text| understood(text)).collect();
        let declared: BTreeSet<String> = groups.iter().flat_map(|group| keys(group)).collect();
        assert_eq!(read, declared, "{name}");
        for key in declared {
            let vary = |text: &&str| ranpace_scenario::vary(text, &format!("{name}{key}"), "1");
            let varied: Vec<_> = texts.iter().map(vary).collect();
            let is_set = varied.iter().any(|varied| match varied {
                Ok(_) => true,
                // No link here is duplex, and no flow is UDP.
                Err(error) => ["\"back\"", "\"packet\"", "\"estimator\""]
                    .iter()
                    .any(|key| error.to_string().ends_with(&format!("accepts {key}"))),
            });
            assert!(is_set, "{name}{key}: {varied:?}");
        }
    }
    // The top also accepts tables.
    let read = understood("");
    let declared = keys("top");
    assert!(read.is_superset(&declared), "{read:?}");
    for key in declared {
        ranpace_scenario::vary("", &key, "1").unwrap();
    }
}

//! Radio information as its readers receive it.

mod common;

use ranpace_phy::{Direction, TransportBlock};
use ranpace_rnis::RadioHint;
use ranpace_scenario::parse;
use ranpace_sim::{RunResult, Simulation, Source};
use ranpace_units::{Bytes, Span, Time};

/// An LTE cell of 25 PRBs, MCS 20, without errors: a user that uploads, one that downloads, and an idle one.
const CELL: &str = r#"
duration = "1s"
seed = 3
[[link]]
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "5ms"
duplex = true
[[cell]]
host = "mast"
radio = "lte"
bandwidth = "5MHz"
fixed_mcs = 20
block_errors = 0.0
buffer = "64KB"
[[user]]
name = "up"
position = [50, 0]
[[user]]
name = "down"
position = [50, 0]
[[user]]
name = "idle"
position = [50, 0]
[[flow]]
from = "up"
to = "server"
cc = "cubic"
[[flow]]
from = "server"
to = "down"
cc = "cubic"
"#;
const UP: u32 = 0;
const DOWN: u32 = 1;
const IDLE: u32 = 2;

fn play(text: &str, source: Source, user: u32, direction: Direction) -> (Vec<(Time, RadioHint)>, RunResult) {
    let scenario = parse(text, "cell.toml", &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let mut hints = Vec::new();
    let mut onlooker = |now: Time, _: u32, hint: &RadioHint| hints.push((now, *hint));
    let result = Simulation::new(&scenario).with_hints(source, &[user], direction, &mut onlooker).run();
    assert!(result.ledger.balances());
    (hints, result)
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn the_edge_is_told_every_8_ms_and_a_millisecond_late() {
    let (hints, result) = play(CELL, Source::Edge, DOWN, Direction::Downlink);
    assert_eq!(hints.len(), 125);
    for (index, (now, hint)) in (0..).zip(&hints) {
        assert_eq!((*now, hint.measured_at), (at(8 * index + 1), at(8 * index)), "{index}");
    }
    // Late enough for the queue to be full and the whole cell to be this user's.
    let (_, hint) = hints.last().unwrap();
    assert_eq!(
        (hint.cell, hint.most_granted, hint.mcs, hint.active_users),
        (25, 25, 20, 2),
        "and who uploads is acknowledged"
    );
    assert!(hint.granted > 15.0 && hint.granted + hint.unused < 25.001, "{hint:?}");
    assert_eq!(hint.tbs_bits, Some(hint.block(Direction::Downlink, 25.0).bits()));
    assert_eq!(hint.queue_limit, Some(Bytes::new(64_000)));
    assert!(hint.queue > Bytes::ZERO && hint.queue < Bytes::new(64_000) && !hint.handover);
    // The last of them is in transit at the end.
    let feed = result.feed.unwrap();
    assert_eq!((feed.reports, feed.datagrams), (126, 126));
    assert!(feed.rate.bits_per_s() < 1_000_000, "{feed:?}");
}

#[test]
fn a_modem_tells_its_device_of_every_tti_at_once() {
    let (hints, result) = play(CELL, Source::Modem, UP, Direction::Uplink);
    assert_eq!(hints.len(), 1_001, "the first and the last slot too");
    assert!(hints.iter().all(|(now, hint)| *now == hint.measured_at));
    assert_eq!(result.feed, None, "a modem's reports cross no wire");
    let scenario = parse(CELL, "cell.toml", &mut ()).unwrap();
    let mut granted = Vec::new();
    let mut reader = |report: &ranpace_rnis::SlotReport<'_>| {
        let own = report.users.iter().find(|row| row.user == UP);
        let grant = own.and_then(|row| row.link.uplink.grant);
        granted.push(grant.map_or(0.0, |grant| f64::from(grant.prbs)));
    };
    let every = ranpace_radio::cell::CellSubscription::EVERY_SLOT;
    Simulation::new(&scenario).with_reports(every, &mut reader).run();
    let told: Vec<f64> = hints.iter().map(|(_, hint)| hint.granted).collect();
    assert_eq!(told, granted, "single TTIs, not means");
    // The other user acknowledges over the uplink.
    assert_eq!(hints.last().unwrap().1.active_users, 2);
}

#[test]
fn a_user_with_nothing_to_do_has_no_block_and_leaves_all_unused() {
    let text = CELL.split("[[flow]]").next().unwrap().to_owned()
        + "[[flow]]\nfrom = \"server\"\nto = \"idle\"\ntransport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"1kbit/s\" }\n";
    let (hints, _) = play(&text, Source::Edge, IDLE, Direction::Downlink);
    let quiet: Vec<_> = hints.iter().filter(|(_, hint)| hint.tbs_bits.is_none()).collect();
    assert!(quiet.len() > 100);
    assert!(
        quiet.iter().all(|(_, hint)| hint.granted == 0.0 && hint.unused == 25.0 && hint.queue == Bytes::ZERO)
    );
}

#[test]
fn a_feed_that_stops_is_silent_until_it_resumes() {
    let table = "[rnis]\nperiod = \"10ms\"\ndelay = \"25ms\"\nstop = \"300ms\"\nresume = \"600ms\"\n";
    let (hints, _) = play(&format!("{CELL}{table}"), Source::Edge, DOWN, Direction::Downlink);
    let silent = |time: u64| !(300..600).contains(&time);
    assert!(hints.iter().all(|(_, hint)| silent(hint.measured_at.as_millis())));
    assert!(hints.iter().all(|(now, hint)| *now == hint.measured_at + Span::from_millis(25)));
    // 0 to 290 and 600 to 970, the last of which arrives at 995.
    assert_eq!(hints.len(), 30 + 38);
}

#[test]
fn one_report_in_n_comes() {
    let text = format!("{CELL}[rnis]\nevery = 5\n");
    let (hints, result) = play(&text, Source::Edge, DOWN, Direction::Downlink);
    assert_eq!(hints.len(), 25);
    assert_eq!(hints[1].1.measured_at, at(40));
    assert_eq!(result.feed.unwrap().reports, 26);
}

#[test]
fn reports_are_wrong_by_up_to_the_error_and_change_nothing_else() {
    let (right, _) = play(CELL, Source::Edge, DOWN, Direction::Downlink);
    let (wrong, _) = play(&format!("{CELL}[rnis]\nerror = 0.3\n"), Source::Edge, DOWN, Direction::Downlink);
    assert_eq!(right.len(), wrong.len());
    let mut ratios = Vec::new();
    for ((_, right), (_, wrong)) in right.iter().zip(&wrong) {
        if let (Some(right), Some(wrong)) = (right.tbs_bits, wrong.tbs_bits) {
            assert!(TransportBlock::from_bits(wrong).is_ok());
            ratios.push(f64::from(wrong) / f64::from(right));
        }
        assert!(wrong.granted <= 25.0 && wrong.unused <= 25.0 && wrong.most_granted <= 25);
        assert_eq!(
            (right.mcs, right.measured_at, right.tbs_bits.is_some()),
            (wrong.mcs, wrong.measured_at, wrong.tbs_bits.is_some())
        );
    }
    let most = ratios.iter().fold(0.0_f64, |most, ratio| most.max((ratio - 1.0).abs()));
    assert!((0.25..0.301).contains(&most), "{most}");
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.06, "{mean}");
}

#[test]
fn invented_reports_do_not_follow_the_cell() {
    let with = |content: &str| {
        let text = format!("{CELL}[rnis]\ncontent = \"{content}\"\n");
        play(&text, Source::Edge, DOWN, Direction::Downlink).0
    };
    let (right, _) = play(CELL, Source::Edge, DOWN, Direction::Downlink);
    for (_, hint) in with("full") {
        assert_eq!((hint.granted, hint.most_granted, hint.unused, hint.active_users), (1.0, 1, 0.0, 100));
        assert_eq!(Some(hint.queue), hint.queue_limit);
        assert_eq!(hint.tbs_bits, Some(hint.block(Direction::Downlink, 1.0).bits()));
    }
    for (_, hint) in with("empty") {
        assert_eq!((hint.granted, hint.unused, hint.active_users), (0.0, 25.0, 1));
        assert_eq!(
            (hint.queue, hint.tbs_bits),
            (Bytes::ZERO, Some(hint.block(Direction::Downlink, 25.0).bits()))
        );
    }
    let random = with("random");
    assert_eq!(random.len(), right.len());
    for ((now, hint), (then, right)) in random.iter().zip(&right) {
        assert_eq!(
            (now, hint.measured_at, hint.info),
            (then, right.measured_at, right.info),
            "when and where stay true"
        );
        assert!(hint.granted >= 0.0 && hint.granted + hint.unused <= 25.0 && hint.mcs < 28, "{hint:?}");
        assert!(Some(hint.queue) <= hint.queue_limit && (1..=100).contains(&hint.active_users), "{hint:?}");
    }
    let different = random.windows(2).filter(|pair| pair[0].1.granted != pair[1].1.granted).count();
    assert!(different > 100, "{different}");
}

#[test]
fn text_takes_170_bytes_a_user_and_report() {
    let text = format!("{CELL}[rnis]\nperiod = \"1ms\"\nencoding = \"text\"\n");
    let (_, result) = play(&text, Source::Edge, DOWN, Direction::Downlink);
    let feed = result.feed.unwrap();
    assert_eq!(feed.bytes.get(), 170 * 3 * 1_001);
    // Diarra 2022, 5.3.4: 170 B per ms are 1.36 Mbit/s per user.
    assert_eq!(feed.rate.bits_per_s() / 3 / 1_000, 1_361);
}

#[test]
fn looking_on_changes_nothing_else() {
    let (_, mut told) = play(CELL, Source::Edge, DOWN, Direction::Downlink);
    let scenario = parse(CELL, "cell.toml", &mut ()).unwrap();
    let mut plain = Simulation::new(&scenario).run();
    assert_eq!(plain.feed, None);
    assert_eq!(told.feed.take().map(|feed| feed.reports), Some(126));
    for (told, plain) in told.flows.iter_mut().zip(&mut plain.flows) {
        // NaN is not equal to itself.
        (told.series, plain.series) = Default::default();
        assert_eq!(told, plain);
    }
    assert_eq!(told.ledger, plain.ledger);
}

#[test]
fn hints_report_the_prbs_that_cells_grant() {
    for radio in [
        "radio = \"lte\"\nbandwidth = \"20MHz\"",
        "radio = \"nr\"\nbandwidth = \"20MHz\"",
        "radio = \"nr\"\nduplex = \"tdd\"",
        "preset = \"diarra-mmwave-ul\"",
        "preset = \"diarra-mmwave-los\"",
        "preset = \"rapid-oai\"",
    ] {
        let text =
            CELL.replace("radio = \"lte\"\nbandwidth = \"5MHz\"\nfixed_mcs = 20\nblock_errors = 0.0", radio);
        let scenario = parse(&text, "cell.toml", &mut ()).unwrap_or_else(|error| panic!("{error}"));
        let mut seen = 0;
        let mut reader = |report: &ranpace_rnis::SlotReport<'_>| {
            for (row, way) in
                report.users.iter().flat_map(|row| [(row, Direction::Downlink), (row, Direction::Uplink)])
            {
                let Some(grant) = row.link[way].grant else { continue };
                if grant.again || report.symbols[way] != report.cell.data_symbols[way] {
                    continue;
                }
                let whole = f64::from(grant.prbs) * f64::from(grant.symbols);
                let units = whole / f64::from(report.symbols[way]);
                let block = report.cell.block(way, grant.mcs, report.cell.layers, units);
                assert_eq!(block, grant.block, "{way:?} {grant:?} in {:?}", report.cell);
                seen += 1;
            }
        };
        let every = ranpace_radio::cell::CellSubscription::EVERY_SLOT;
        Simulation::new(&scenario).with_reports(every, &mut reader).run();
        assert!(seen > 100, "{radio}: {seen}");
    }
}

/// The times at which a column of a flow's series was sampled, and its values.
fn series(result: &RunResult, flow: usize, column: &str) -> Vec<(f64, f64)> {
    let series = &result.flows[flow].series;
    let values = series.get(column).unwrap_or_else(|| panic!("no {column}"));
    let times = series.get("time_s").expect("every series has times");
    times.iter().copied().zip(values.iter().copied()).collect()
}

/// Test N-3 for SIGMA: its modem's reports stop and resume.
#[test]
fn sigma_hears_its_own_modem_and_falls_back_when_it_stops() {
    let text = CELL
        .replacen("cc = \"cubic\"", "cc = \"sigma\"", 1)
        .replace("duration = \"1s\"", "duration = \"6s\"");
    let table = "[modem]\nstop = \"2s\"\nresume = \"5s\"\n";
    let scenario = parse(&format!("{text}{table}"), "cell.toml", &mut ()).unwrap();
    let result = Simulation::new(&scenario).run();
    // In states 1 to 3 radio information decides, 4 is hold, 0 is CUBIC.
    for (time, state) in series(&result, 0, "state_state") {
        let expected: &[f64] = match time {
            0.15..2.05 => &[1.0, 2.0, 3.0],
            2.5..2.95 => &[4.0],
            3.5..4.95 => &[0.0],
            5.2.. => &[1.0, 2.0, 3.0],
            _ => continue,
        };
        assert!(expected.contains(&state), "{state} at {time} s");
    }
    assert_eq!(result.feed, None);
}

/// Test N-3 for MELD: from 50 ms after the feed stopped, every loss is reported; when it resumes, no loss counts as stale.
#[test]
fn meld_hears_of_the_users_downlink_and_tells_of_all_losses_when_that_stops() {
    let losses = "loss = 0.002\nduplex = true";
    let text = CELL
        .replacen("duplex = true", losses, 1)
        .replace("duration = \"1s\"", "duration = \"9s\"")
        .replace("to = \"down\"\ncc = \"cubic\"", "to = \"down\"\ncc = \"newreno+meld-de\"");
    let table = "[rnis]\nstop = \"3s\"\nresume = \"6s\"\n";
    let scenario = parse(&format!("{text}{table}"), "cell.toml", &mut ()).unwrap();
    let result = Simulation::new(&scenario).run();
    let column = |name: &str| series(&result, 1, name);
    let rise = |name: &str, from: f64, to: f64| {
        let values: Vec<f64> =
            column(name).into_iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, v)| v).collect();
        values.last().unwrap() - values.first().unwrap()
    };
    assert!(rise("state_meld_silent", 0.0, 3.0) > 0.0);
    assert!(rise("state_meld_notified", 3.1, 6.0) > 0.0);
    assert_eq!(rise("state_meld_silent", 3.1, 6.0), 0.0, "nothing is hidden by what is stale");
    assert!(rise("state_meld_silent", 6.2, 9.1) > 0.0);
    assert!(result.feed.is_some_and(|feed| feed.bytes > Bytes::ZERO));
}

/// Reports are as late as the scenario says; a handover is reported at once.
#[test]
fn a_handover_is_told_at_once_and_the_new_cell_begins_anew() {
    let text = CELL.replacen(
        "[[user]]\nname = \"up\"",
        "[[cell]]\nname = \"other\"\nhost = \"mast\"\nradio = \"lte\"\nbandwidth = \"10MHz\"\n[[user]]\nname = \"up\"\ncell = \"cell1\"",
        1,
    );
    let text = text.replace("name = \"down\"", "name = \"down\"\ncell = \"cell1\"");
    let text = text.replace("name = \"idle\"", "name = \"idle\"\ncell = \"cell1\"");
    let change = "[[change]]\nat = \"403.3ms\"\nuser = \"down\"\nto = \"other\"\nforward = true\ninterruption = \"40ms\"\n";
    let (hints, result) = play(&format!("{text}{change}"), Source::Edge, DOWN, Direction::Downlink);
    assert_eq!(result.users[DOWN as usize].handovers, 1);
    let during: Vec<&(Time, RadioHint)> = hints.iter().filter(|(_, hint)| hint.handover).collect();
    let [(now, hint)] = during[..] else { panic!("{} of them", during.len()) };
    // The last slot of the old cell, plus a millisecond of delay.
    assert_eq!((*now, hint.measured_at, hint.cell), (Time::ZERO + Span::from_micros(404_300), at(403), 25));
    let next = hints.iter().find(|(time, _)| time > now).unwrap();
    assert!(next.0 >= at(443) && next.0 <= at(460), "{next:?}");
    assert_eq!((next.1.cell, next.1.info.cell), (50, 1));
}

#[test]
fn a_feed_breaks_lies_and_is_mended_during_the_run() {
    let change = |at: &str, content: &str| {
        format!("[[change]]\nat = \"{at}\"\nfeed = \"rnis\"\ncontent = \"{content}\"\n")
    };
    let changes =
        [("200ms", "none"), ("400ms", "full"), ("600ms", "measured")].map(|(at, to)| change(at, to));
    let (hints, _) = play(&format!("{CELL}{}", changes.concat()), Source::Edge, DOWN, Direction::Downlink);
    for (now, hint) in &hints {
        let is_a_lie = hint.active_users == 100;
        assert_eq!(is_a_lie, (at(400)..at(600)).contains(&hint.measured_at), "{now:?}: {hint:?}");
        assert!(!(at(200)..at(400)).contains(&hint.measured_at), "{now:?}");
    }
    let (plain, _) = play(CELL, Source::Edge, DOWN, Direction::Downlink);
    assert_eq!(plain.len() - hints.len(), 25, "a report every 8 ms for 200 ms");
    assert_eq!(plain.last().map(|last| last.1.measured_at), hints.last().map(|last| last.1.measured_at));
}

#[test]
fn a_cell_of_which_nobody_reads_sleeps() {
    let text = CELL.split("[[flow]]").next().unwrap().to_owned()
        + "[[flow]]\nfrom = \"server\"\nto = \"mast\"\ncc = \"cubic\"\n";
    let scenario = parse(&text, "cell.toml", &mut ()).unwrap();
    let result = Simulation::new(&scenario).run();
    assert_eq!((result.cells[0].played_slots, result.feed), (0, None));
}

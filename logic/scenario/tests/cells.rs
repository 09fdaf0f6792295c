//! Cells and their users: accepted and refused input, and the page about them.
#![allow(clippy::unwrap_used)] // allowed in tests

use std::sync::Arc;

use ranpace_link::{Limit, QueueConfig, Trace};
use ranpace_phy::{CqiThresholds, Direction, LteMcs, McsRule};
use ranpace_radio::cell::{Air, ControlChannels, Division, Duplex, Errors, FadingConfig, Place};
use ranpace_radio::channel::{FadingSpeed, Move, PathLoss, Position, Sight};
use ranpace_radio::rlc::{Mode, Timers};
use ranpace_radio::scheduler::{Alloc, Policy};
use ranpace_radio::uplink::{PowerControl, ReportLevels};
use ranpace_scenario::{
    ChangeKind, Content, FeedKind, Hop, Scenario, TraceSource, Transport, cells, parse, vary,
};
use ranpace_units::{Bytes, Span, Time};

const EVERY_KEY: &str = include_str!("every_key_of_cells.toml");
const PAGE: &str = include_str!("../../../docs/cells.md");

/// Provides some valid and invalid files.
struct Files;

impl TraceSource for Files {
    fn load(&mut self, _: &str) -> Result<Arc<Trace>, String> {
        Err("no traces".to_owned())
    }
    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        Ok(match name {
            "drive.csv" => "time_s,sinr_db\n0,10\n1,3\n".into(),
            "walk.csv" => "time_s,x_m,y_m\n0,0,0\n5,10,10\n".into(),
            "fading.txt" => "0 1\n".repeat(6).into(),
            "nan.csv" => "time_s,sinr_db\n0,10\n1,NaN\n".into(),
            "short.csv" => "time_s,sinr_db\n0,10\n1\n".into(),
            "empty.csv" => "time_s,sinr_db\n".into(),
            "nan.txt" => "0 nan\n".repeat(6).into(),
            _ => return Err("not here".to_owned()),
        })
    }
}

fn read(text: &str) -> Scenario {
    parse(text, "f.toml", &mut Files).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_key_of_a_cell_is_read() {
    let scenario = read(EVERY_KEY);
    assert_eq!(scenario.links[1].overhead, Bytes::new(36));
    let wide = &scenario.cells[0].config;
    assert_eq!(scenario.hosts[scenario.cells[0].host], "mast");
    let Air::Lte { band } = wide.air else { panic!("{:?}", wide.air) };
    assert_eq!(band.get(), 25);
    let channel = &wide.channel;
    assert_eq!(channel.position, Position::new(0.0, 0.0, 25.0));
    assert_eq!((channel.carrier.downlink.hz(), channel.carrier.uplink.hz()), (1.8e9, 1.7e9));
    assert_eq!(channel.loss, PathLoss::Cost231 { base_m: 25.0, user_m: 2.0, extra_db: 3.0 });
    let Sight::Buildings(buildings) = &channel.sight else { panic!("{:?}", channel.sight) };
    assert_eq!(
        (buildings[0].x_m, buildings[0].y_m, buildings[0].height_m),
        ([20.0, 63.0], [3.0, 58.0], 28.0)
    );
    let shadowing = channel.shadowing.unwrap();
    assert_eq!((shadowing.clear_db, shadowing.blocked_db, shadowing.stretch_m), (4.0, 6.0, 20.0));
    assert!(
        matches!(channel.fading, FadingConfig::Multipath(_, FadingSpeed::Fixed(speed)) if speed == 60.0 / 3.6)
    );
    assert_eq!((channel.base_power_dbm, channel.gain_db), (43.0, 12.0));
    let (down, up) = (channel.receiver.downlink, channel.receiver.uplink);
    assert_eq!((down.noise_figure_db, down.noise_rise_db), (8.0, 6.0));
    assert_eq!((up.noise_figure_db, up.noise_rise_db), (4.0, 2.0));
    let (down, up) = (down.source.unwrap(), up.source.unwrap());
    assert_eq!((down.prb_dbm, down.on, down.period), (-90.0, Span::from_millis(5), Span::from_millis(20)));
    assert!(down.random && !up.random);
    assert_eq!((up.prb_dbm, up.on), (-100.0, Span::MAX));

    let adaptation = &wide.adaptation;
    assert_eq!((adaptation.thresholds, adaptation.rule), (CqiThresholds::Ns3On25Prbs, McsRule::Oai));
    assert_eq!((adaptation.worst_unit, adaptation.control_errors), (true, true));
    assert_eq!(adaptation.fixed_mcs, LteMcs::new(20));
    assert_eq!((adaptation.period, adaptation.delay.downlink, adaptation.delay.uplink), (2, 6, 3));
    let outer = adaptation.outer_loop.unwrap();
    assert_eq!((outer.target, outer.step, adaptation.errors), (0.2, 0.25, Errors::Ns3));
    let harq = wide.harq.downlink;
    assert_eq!((harq.processes, harq.max_retransmissions, harq.synchronous), (4, 2, true));
    assert_eq!((harq.decode, harq.feedback, harq.turnaround, harq.misreading), (2, 3, 6, 0.01));
    assert_eq!((wide.harq.uplink.processes, wide.harq.uplink.max_retransmissions), (4, 5));
    assert_eq!(wide.policy, Policy::ProportionalFair { window: 50.0 });
    assert_eq!((wide.alloc, wide.usable_slots), (Alloc::Full, 0.85));
    assert_eq!(wide.control, ControlChannels::Standard(Some(3)));
    let access = wide.access;
    assert_eq!(
        (access.sr_period, access.sr_prohibit, access.sr_to_grant, access.grant_to_pusch),
        (20, 40, 3, 4)
    );
    assert_eq!((access.bsr_period, access.bsr_retransmission, access.first_grant), (10, 640, 200));
    assert_eq!(access.levels, ReportLevels::Exact);
    assert_eq!(wide.power.control, PowerControl::ThreeGpp { p0_dbm: -90.0, alpha: 0.9 });
    assert_eq!(wide.power.most_dbm, 20.0);

    let new = &scenario.cells[1].config;
    let Air::Nr { band, table, layers, overhead, duplex, division, .. } = new.air else {
        panic!("{:?}", new.air)
    };
    assert_eq!((band.get(), layers.get(), overhead, division), (106, 1, 18, Division::Symbols));
    assert_eq!(table, ranpace_phy::QamTable::Qam64);
    assert!(matches!(duplex, Duplex::Tdd(pattern) if pattern.to_string() == "DDSUU 6:4:4"));
    assert_eq!(new.channel.carrier.downlink, new.channel.carrier.uplink);
    assert_eq!((new.adaptation.outer_loop, new.policy), (None, Policy::RoundRobin));
    assert_eq!(new.access.bsr_period, 5, "a slot of 15 kHz is 1 ms");
    let small = &scenario.cells[2].config;
    assert!(matches!(small.channel.fading, FadingConfig::Recorded(_)));
    assert_eq!(small.channel.loss, PathLoss::LogDistance { exponent: 3.5, at_1_m_db: 40.0 });
    assert_eq!((small.policy, small.alloc), (Policy::MaxCi, Alloc::Full));
}

#[test]
fn every_key_of_a_user_is_read() {
    let scenario = read(EVERY_KEY);
    let names: Vec<&str> = scenario.users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "walker.1", "walker.2", "walker.3", "tram", "played.1", "played.2", "follower", "dropped",
            "stander"
        ]
    );
    let user = |index: usize| &scenario.users[index].config;
    let Place::Walk(rule, Some(from)) = &user(0).place else { panic!("{:?}", user(0)) };
    assert_eq!((rule.area.radius_m, rule.area.centre), (400.0, Position::new(10.0, 10.0, 2.0)));
    assert_eq!(
        (rule.speed_m_s, rule.leg, *from),
        ([1.0, 5.0], Span::from_secs(5), Position::new(50.0, 0.0, 2.0))
    );
    let [first, second] = user(0).bearers.as_slice() else { panic!("{:?}", user(0).bearers) };
    assert_eq!(
        (first.downlink.mode, first.downlink.discard),
        (Mode::Acknowledged, Some(Span::from_millis(100)))
    );
    assert_eq!(first.downlink.timers.reordering, Span::from_millis(50));
    let limit = Limit::Bytes(Bytes::new(1_000_000));
    assert!(
        matches!(first.downlink.buffer, QueueConfig::CoDel { limit: l, target, .. } if l == limit && target == Span::from_millis(20))
    );
    assert!(matches!(first.uplink.buffer, QueueConfig::Pie { limit: l, .. } if l == limit));
    assert_eq!((second.downlink.mode, second.downlink.timers), (Mode::Unacknowledged, Timers::TS36331));
    assert_eq!(second.downlink.buffer, QueueConfig::drop_tail(Limit::Bytes(Bytes::new(500_000))));
    assert!(matches!(second.uplink.buffer, QueueConfig::Pie { limit: Limit::Packets(100), .. }));
    assert_eq!((scenario.hosts[scenario.users[3].host].as_str(), scenario.users[3].cell), ("phone", 1));
    assert!(matches!(user(3).place, Place::Path(_)) && matches!(user(6).place, Place::Path(_)));
    let from = |index: usize| user(index).recording.as_ref().unwrap().1;
    assert_eq!((from(4), from(5)), (Span::from_millis(500), Span::from_millis(600)));
    assert!(matches!(user(7).place, Place::Drop(area) if area.radius_m == 200.0));
    assert_eq!(user(8).place, Place::Static(Position::new(120.0, 40.0, 1.5)));
    assert_eq!(user(8).bearers[0].downlink.discard, None);
}

#[test]
fn flows_cross_the_air_and_are_dealt_out_to_users() {
    let scenario = read(EVERY_KEY);
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["down.1", "down.2", "down.3", "up", "between"]);
    let radio = |user, direction| Hop::Radio { user, direction };
    assert_eq!(scenario.flows[1].path, [Hop::Link(0), radio(1, Direction::Downlink)]);
    assert_eq!(scenario.flows[1].back, [radio(1, Direction::Uplink), Hop::Link(1)]);
    assert_eq!(scenario.flows[1].bearer, 1);
    assert_eq!(scenario.flows[3].path, [radio(3, Direction::Uplink), Hop::Link(1)]);
    assert_eq!(scenario.flows[4].path, [radio(8, Direction::Uplink), radio(7, Direction::Downlink)]);
    assert!(matches!(scenario.flows[4].transport, Transport::Tcp { .. }));
    let moved: Vec<_> = scenario.changes.iter().map(|change| (change.at, change.what.clone())).collect();
    let expected = (0..3).map(|user| {
        let interruption = Span::from_millis(30);
        (Time::from_secs(2), ChangeKind::Handover { user, to: 1, forward: false, interruption })
    });
    assert_eq!(moved, expected.collect::<Vec<_>>());
    // With more flows than users, users take turns.
    let text = EVERY_KEY.replace("to = \"walker\"", "to = \"walker\"\ncount = 5");
    let users: Vec<_> = read(&text).flows[..5].iter().filter_map(|flow| flow.path[1].user()).collect();
    assert_eq!(users, [0, 1, 2, 0, 1]);
}

/// Lines added to the cell, to the user, to the flow or after it, with the expected message.
const REFUSED: &[(&str, &str)] = &[
    ("C sdap = \"7\"", "f.toml:10:8: sdap: expected \"drql\", \"5g-bdp\", \"dynrlc\", ..."),
    ("C upf_pacer = true", "f.toml:10:13: upf_pacer: has no effect without `sdap`"),
    ("C prbs = 0", "f.toml:10:8: prbs: expected a whole number from 1 to 110, found 0"),
    ("C bandwidth = \"7MHz\"", "f.toml:10:13: bandwidth: expected 1.4, 3, 5, 10, 15 or 20 MHz, found 7 MHz"),
    (
        "C bandwidth = \"20\"",
        "f.toml:10:13: bandwidth: expected a frequency such as \"2120MHz\", found \"20\", which has no unit (one of GHz, MHz, kHz, Hz)",
    ),
    ("C layers = 2", "f.toml:10:10: layers: applies only to radio = \"nr\""),
    (
        "C radio = \"nr\"\npattern = \"DDDD\"",
        "f.toml:11:11: pattern: expected slots of both directions, found none of the uplink (U, or S with symbols up)",
    ),
    (
        "C radio = \"nr\"\nduplex = \"fdd\"\npattern = \"DSU\"",
        "f.toml:12:11: pattern: applies only to duplex = \"tdd\"",
    ),
    (
        "C radio = \"nr\"\nspacing = \"120kHz\"",
        "f.toml:11:11: spacing: changes the number of PRBs of a bandwidth: set `bandwidth` or `prbs` too",
    ),
    (
        "C radio = \"nr\"\nbandwidth = \"400MHz\"",
        "f.toml:11:13: bandwidth: expected a bandwidth of FR1 with 30 kHz sub-carriers, one of 5, ...",
    ),
    (
        "C radio = \"nr\"\nblock_errors = \"ns3\"",
        "f.toml:7:1: cell \"cell\": error curves of ns-3 are for LTE; ...",
    ),
    (
        "C preset = \"nr\"\nradio = \"lte\"",
        "f.toml:11:9: radio: the preset \"nr\" has radio \"nr\", not \"lte\"; ...",
    ),
    (
        "C preset = \"zhong-lte-ch7\"",
        "f.toml:10:10: preset: expected one of lte, nr, zhong-lte-ch5, zhong-lte-ch6, ...",
    ),
    ("C cqi_period = \"0ms\"", "f.toml:10:14: cqi_period: must be above zero, found \"0ms\""),
    (
        "C cqi_period = \"1.5ms\"",
        "f.toml:10:14: cqi_period: expected a whole number of slots of 1ms, found 1.5ms",
    ),
    ("C power = \"nan dBm\"", "f.toml:10:9: power: expected a power such as \"46dBm\", found \"nan dBm\""),
    ("C power = nan", "f.toml:10:9: power: expected a power such as \"46dBm\", found \"NaN\""),
    ("C power = \"300dBm\"", "f.toml:10:9: power: expected -200dBm to 200dBm, found \"300dBm\""),
    (
        "C noise = { prb = \"-90dBm\", on = \"50ms\", period = \"20ms\" }",
        "f.toml:10:9: noise: expected `on` to be at most `period`, found 50ms in 20ms",
    ),
    ("C usable_ttis = 0", "f.toml:10:15: usable_ttis: must be above zero"),
    (
        "C control_channels = { symbols = 4 }",
        "f.toml:10:32: symbols: expected a whole number from 1 to 3, found 4",
    ),
    (
        "C radio = \"nr\"\ncontrol_channels = \"3gpp\"",
        "f.toml:11:20: control_channels: applies only to radio = \"lte\"",
    ),
    ("C block_errors = nan", "f.toml:10:16: block_errors: expected a number from 0 to 1, found NaN"),
    (
        "C carrier = \"0.5MHz\"",
        "f.toml:10:11: carrier: expected 1000000Hz to 1000000000000Hz, found \"0.5MHz\"",
    ),
    (
        "C fading = \"mmwave\"\nfading_speed = \"1m/s\"",
        "f.toml:11:16: fading_speed: applies only to multipath fading: ...",
    ),
    (
        "C fading = { kind = \"recorded\", file = \"fading.txt\" }",
        "f.toml:10:38: file: in \"fading.txt\": expected one row or more for each PRB, found none",
    ),
    (
        "C prbs = 6\nfading = { kind = \"recorded\", file = \"nan.txt\" }",
        "f.toml:11:38: file: in \"nan.txt\": line 1: expected a line of gains in dB ...",
    ),
    ("C sheduler = \"pf\"", "f.toml:10:1: unknown key \"sheduler\" in [[cell]]; ..."),
    (
        "C aqm = { kind = \"codel\", limit = \"1KB\" }",
        "f.toml:10:25: unknown key \"limit\" in aqm of [[cell]]; ...",
    ),
    (
        "C aqm_up = \"abc\"",
        "f.toml:10:10: aqm_up: abc needs to know what a slot can carry, which a phone does not; it is for the downlink",
    ),
    (
        "C aqm = { kind = \"abc\", form = \"authors\" }",
        "f.toml:10:7: aqm: form \"authors\" counts the opportunities of a trace; a bearer has \"capacity\"",
    ),
    (
        "C aqm = \"abc\"\nsdap = \"drql\"\nqfi_per_flow = true",
        "f.toml:10:7: aqm: abc shares a bearer's capacity among no queues: give each flow a bearer, not a QFI",
    ),
    ("U position = [1]", "f.toml:12:12: position: expected two or three coordinates in metres, found 1"),
    (
        "U position = [nan, 0]",
        "f.toml:12:13: position: expected a number from -1000000 to 1000000, found NaN",
    ),
    (
        "U position = [1, 0]\ndrop = { radius = \"5m\" }",
        "f.toml:13:8: drop: a user has only one of position, drop, walk, waypoints and trajectory",
    ),
    (
        "U waypoints = { points = [], speed = \"1m/s\" }",
        "f.toml:12:13: waypoints: expected one point or more, found none",
    ),
    (
        "U recording = \"nan.csv\"",
        "f.toml:12:13: recording: in \"nan.csv\": line 3: expected an SINR in dB from -200 to 200, found \"NaN\"",
    ),
    (
        "U recording = \"short.csv\"",
        "f.toml:12:13: recording: in \"short.csv\": line 3: expected an SINR in dB from -200 to 200, found \"1\"",
    ),
    (
        "U recording = \"empty.csv\"",
        "f.toml:12:13: recording: in \"empty.csv\": expected one row or more with a value, found none",
    ),
    ("U recording = \"none.csv\"", "f.toml:12:13: recording: cannot load \"none.csv\": not here"),
    (
        "U trajectory = \"drive.csv\"",
        "f.toml:12:14: trajectory: in \"drive.csv\": line 1: expected a column x_m, ...",
    ),
    ("U bearers = []", "f.toml:12:11: bearers: expected 1 to 11 bearers, found 0"),
    (
        "U cell = \"sell\"",
        "f.toml:12:8: cell: unknown cell \"sell\"; expected one of cell; did you mean \"cell\"?",
    ),
    ("U host = \"mast\"", "f.toml:11:8: user \"ue\" is at the host of its own cell"),
    ("U count = 70000", "f.toml:7:1: cell \"cell\": expected at most 65523 users in a cell, found 70000..."),
    ("F bearer = 1", "f.toml:18:10: bearer: user \"ue\" has bearers 0 to 0, found 1"),
    (
        "U buffer = \"1KB\"",
        "f.toml:15:8: flow \"flow\": its packets of 1.5KB never fit into the buffer of user \"ue\", ...",
    ),
    (
        "F [[change]]\nat = \"1s\"\nuser = \"ue\"\nto = \"cell\"",
        "f.toml:21:6: to: user \"ue\" is already in cell \"cell\"",
    ),
    (
        "F [[change]]\nat = \"1s\"\nuser = \"ue\"\nto = \"far\"\n[[cell]]\nname = \"far\"",
        "f.toml:21:6: to: both cells of a handover must be at the same host; \"cell\" is at \"mast\", \"far\" at \"far\"...",
    ),
    ("F [[change]]\nat = \"1s\"\nlink = \"link1\"\nto = \"cell\"", "f.toml:18:1: missing key \"rate\" ..."),
    (
        "F [[change]]\nat = \"1s\"\nuser = \"ue\"\nposition = [1, 2]\nto = \"cell\"",
        "f.toml:22:6: to: belongs to a handover, which is a change without `position`",
    ),
    (
        "F [[change]]\nat = \"1s\"\nuser = \"ue\"\nposition = [1]",
        "f.toml:21:12: position: expected two or three coordinates in metres, found 1",
    ),
    (
        "F [[change]]\nat = \"1s\"\nfeed = \"rnis\"\nspeed = \"1m/s\"",
        "f.toml:18:1: missing key \"content\" in [[change]] of a feed\nf.toml:21:9: speed: applies only to a change of a user",
    ),
    (
        "F [[change]]\nat = \"1s\"\nfeed = \"rnis\"\nuser = \"ue\"\ncontent = \"none\"",
        "f.toml:20:8: feed: a change has only one of link, flow, user and feed",
    ),
    (
        "F [[change]]\nat = \"1s\"\nfeed = \"modem\"\ncontent = \"lies\"",
        "f.toml:21:11: content: expected one of none, measured, full, empty, random, found \"lies\"",
    ),
];

#[test]
fn users_are_moved_and_feeds_changed_in_order_of_time() {
    let text = "duration = \"9s\"\n[[cell]]\nname = \"cell\"\n[[user]]\nname = \"ue\"\nposition = [7, 8, 2]\n\
                [[flow]]\nfrom = \"cell\"\nto = \"ue\"\ncc = \"newreno\"\n\
                [[change]]\nat = \"4s\"\nuser = \"ue\"\nposition = [50, 0]\n\
                [[change]]\nat = \"2s\"\nuser = \"ue\"\nposition = [20, 0, 3]\nspeed = \"36km/h\"\n\
                [[change]]\nat = \"3s\"\nfeed = \"rnis\"\ncontent = \"none\"\n\
                [[change]]\nat = \"1s\"\nfeed = \"modem\"\ncontent = \"full\"\n";
    let scenario = read(text);
    let Place::Moved(first, moves) = &scenario.users[0].config.place else { panic!("{:?}", scenario.users) };
    assert_eq!(**first, Place::Static(Position::new(7.0, 8.0, 2.0)));
    let expected = [
        Move { at: Time::from_secs(2), to: Position::new(20.0, 0.0, 3.0), speed_m_s: Some(10.0) },
        Move { at: Time::from_secs(4), to: Position::new(50.0, 0.0, 2.0), speed_m_s: None },
    ];
    assert_eq!(moves[..], expected);
    let changes: Vec<_> = scenario.changes.into_iter().map(|change| (change.at, change.what)).collect();
    let full = ChangeKind::FeedContent { feed: FeedKind::Modem, content: Some(Content::Full) };
    let none = ChangeKind::FeedContent { feed: FeedKind::Edge, content: None };
    assert_eq!(changes, [(Time::from_secs(1), full), (Time::from_secs(3), none)]);
}

#[test]
fn impossible_cells_are_refused_with_their_place() {
    let mut seen = String::new();
    for (change, message) in REFUSED {
        let (place, lines) = change.split_once(' ').unwrap();
        let at = |name: &str| if place == name { format!("{lines}\n") } else { String::new() };
        let cell = at("C");
        let text = format!(
            "duration = \"9s\"\n[[link]]\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\nduplex = true\n[[cell]]\n\
             name = \"cell\"\nhost = \"mast\"\n{cell}[[user]]\nname = \"ue\"\n{}{}[[flow]]\nname = \"flow\"\n\
             from = \"server\"\n{}\n{}",
            at("U"),
            if lines.starts_with("cell") { "" } else { "cell = \"cell\"\n" },
            if lines.contains("count") {
                "to = \"ue.1\"\ncc = \"newreno\""
            } else {
                "to = \"ue\"\ncc = \"newreno\""
            },
            at("F"),
        );
        let found = match parse(&text, "f.toml", &mut Files) {
            Ok(_) => panic!("{change} is not refused"),
            Err(error) => error.to_string(),
        };
        let told = match message.strip_suffix("...") {
            Some(beginning) => found.starts_with(beginning),
            None => found == *message,
        };
        if !told {
            seen += &format!("    ({change:?}, {found:?}),\n");
        }
    }
    assert!(seen.is_empty(), "told otherwise:\n{seen}");
}

#[test]
fn many_users_on_a_narrow_band_are_allowed() {
    let text = "duration = \"1s\"\n[[cell]]\nprbs = 6\n[[user]]\ncount = 10000\n[[flow]]\nfrom = \"cell1\"\nto = \"user1\"\n\
                cc = \"newreno\"\n";
    let scenario = read(text);
    assert_eq!((scenario.users.len(), scenario.flows.len(), scenario.links.len()), (10_000, 10_000, 0));
    assert_eq!(scenario.flows[9_999].path, [Hop::Radio { user: 9_999, direction: Direction::Downlink }]);
}

#[test]
fn a_recording_that_ends_begins_again() {
    let text = EVERY_KEY.replace("duration = \"9s\"", "duration = \"900s\"");
    let (recording, _) = read(&text).users[4].config.recording.clone().unwrap();
    assert_eq!(recording.at(recording.length()), recording.at(Span::ZERO));
}

fn examples() -> Vec<Scenario> {
    PAGE.split("```toml\n").skip(1).map(|rest| read(rest.split("```").next().unwrap())).collect()
}

#[test]
fn every_example_of_the_page_is_a_scenario() {
    let examples = examples();
    assert_eq!(examples.len(), 3);
    assert_eq!(examples[0].flows.len(), 5);
    assert!(examples[1].users[0].config.bearers[0].downlink.above.is_some_and(|stages| stages.upf));
    let ChangeKind::Handover { forward, interruption, .. } = examples[2].changes[0].what else { panic!() };
    assert_eq!((forward, interruption), (true, Span::from_millis(50)));
    let defaults = PAGE.split("```toml\n").nth(3).unwrap().split("```").next().unwrap();
    let defaults = defaults.replace("forward = true\ninterruption = \"50ms\"\n", "");
    assert_eq!(read(&defaults).changes, examples[2].changes);
}

#[test]
fn every_key_is_on_the_page_and_can_be_varied() {
    for table in ["cell", "user"] {
        let text = format!("[[cell]]\nradio = \"nr\"\n[[{table}]]\nzzz = 1\n");
        let error = parse(&text, "", &mut Files).unwrap_err().to_string();
        let known =
            error.split("unknown key \"zzz\"").nth(1).unwrap().split("expected one of ").nth(1).unwrap();
        let keys: Vec<&str> = known.lines().next().unwrap().split(';').next().unwrap().split(", ").collect();
        assert!(keys.len() > 15, "{keys:?}");
        for key in keys {
            assert!(PAGE.contains(&format!("`{key}`")), "{table}.{key} is not on the page");
            assert!(
                EVERY_KEY.contains(&format!("{key} = ")) || key == "position",
                "{table}.{key} is not in the example"
            );
            let varied = vary(&text, &format!("{table}.{key}"), "1");
            assert!(varied.is_ok(), "{table}.{key}: {varied:?}");
        }
    }
}

#[test]
fn values_of_cells_can_be_varied() {
    for (key, value, expected) in [
        ("cell.small.rlc_timers", "36331", "rlc_timers = \"36331\""),
        ("cell.small.bandwidth", "20MHz", "bandwidth = \"20MHz\""),
        ("cell.small.scheduler.kind", "rr", "scheduler = { kind = \"rr\" }"),
        ("user.dropped.position", "[5, 5]", "position = [5, 5]"),
        ("change.to", "small", "to = \"small\""),
    ] {
        let text = vary(EVERY_KEY, key, value).unwrap();
        assert!(text.contains(expected), "{key}: {text}");
        if key.ends_with("bandwidth") {
            // The recorded fading has 6 PRBs.
            assert!(!text.contains("prbs = 6"), "{text}");
        } else {
            read(&text);
        }
    }
}

#[test]
fn every_preset_is_on_the_page() {
    for preset in &cells::PRESETS {
        assert!(PAGE.contains(&format!("| `\"{}\"` |", preset.name)), "{} is not on the page", preset.name);
    }
}

//! The fuzz targets: each function takes any bytes, and panics if the code under test breaks its contract.
//!
//! The same functions are called by the fuzzer (`fuzz_targets/`) and, on stable Rust and for a bounded time, by
//! `front/lab/tests/fuzz_corpus.rs`.

use std::sync::Arc;

use ranpace_cc::bw_report::{self, Format};
use ranpace_cc::{Ack, Algorithm, Context, Pacing, RateSample, ReceiverReport, Sample, State, Window};
use ranpace_emulator::{Headers, set_ecn};
use ranpace_lab::trace_tools::{Clock, LogFormat, RateUnit, TimeUnit, read_log_text};
use ranpace_link::{LightTrace, Service, Trace, TraceError, TraceParser, TraceStats};
use ranpace_phy::LteBandwidth;
use ranpace_radio::channel::{Groups, Position, RecordedFading, Recording, RecordingError, Trajectory};
use ranpace_scenario::{ChangeKind, Scenario, TraceSource, Transport, Workload, parse};
use ranpace_sim::Simulation;
use ranpace_units::{Bytes, Rate, Span, Time};

/// Takes any bytes, and panics if something is wrong.
pub type Target = fn(&[u8]);

/// All of them, by the name of their corpus.
pub const TARGETS: [(&str, Target); 28] = [
    ("trace", trace),
    ("light_trace", light_trace),
    ("log", log),
    ("scenario", scenario),
    ("cell", cell),
    ("radio", radio),
    ("vary", vary),
    ("lab_edit", lab_edit),
    ("algorithm", algorithm),
    ("report", report),
    ("pep", pep),
    ("units", units),
    ("rnis", rnis),
    ("rnis_json", rnis_json),
    ("rnis_lines", rnis_lines),
    ("rnis_srsran", rnis_srsran),
    ("rnis_query", rnis_query),
    ("rnis_subscription", rnis_subscription),
    ("rnis_config", rnis_config),
    ("rnis_token", rnis_token),
    ("hint_lines", hint_lines),
    ("packet", packet),
    ("tcp_fields", tcp_fields),
    ("tap", tap),
    ("syn", syn),
    ("receiver_report", receiver_report),
    ("pep_config", pep_config),
    ("proxy_config", proxy_config),
];

/// Datagrams of radio information, each behind its length in a byte: each is read or refused, what was read is written as it was,
/// and a receiver of all of them knows nothing that is younger than its cell.
pub fn rnis(data: &[u8]) {
    use ranpace_rnis::wire::{
        Datagram, Decoder, HEADER_BYTES, RECORD_BYTES, SHORT_RECORD_BYTES, SHORT_VERSION,
    };
    let (mut decoder, mut rest) = (Decoder::new(), data);
    while let Some((&length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        let parsed = Datagram::parse(datagram);
        assert_eq!(decoder.on_datagram(datagram).is_ok(), parsed.is_ok());
        let Ok(parsed) = parsed else { continue };
        let is_short = datagram[1] >> 4 == SHORT_VERSION;
        let record_bytes = if is_short { SHORT_RECORD_BYTES } else { RECORD_BYTES };
        assert_eq!(datagram.len(), HEADER_BYTES + record_bytes * parsed.records().len());
        for (record, _) in parsed.records() {
            let again = if is_short { record.rounded_short() } else { record.rounded() };
            assert_eq!(again, record, "what came can be said again");
        }
        let cell = parsed.report.cell;
        let Some(known) = decoder.cell(cell) else { panic!("a cell that was heard of is known") };
        for user in decoder.users(cell) {
            let seen = decoder.user(cell, user).expect("it was listed");
            assert!(seen.measured_at <= known.measured_at);
            assert_eq!(seen.value.user, user);
        }
    }
}

/// Lines of a base station: each is used or refused, what is passed on is within bounds and can be written and read again, and a
/// good line after them is used.
pub fn rnis_lines(data: &[u8]) {
    use ranpace_rnis::lines::{CELLS, Reader, USERS, Writer};
    use ranpace_rnis::update::Update;
    const GOOD: &[u8] = br#"{"cell":{"cell":0,"ecgi":{"cellId":"1","plmn":{"mcc":"001","mnc":"01"}},"technology":"lte","prbs":50}}"#;
    let (mut reader, mut again, mut slots) = (Reader::default(), Reader::default(), [None; CELLS as usize]);
    let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap_or(0));
    for line in data.split(|byte| *byte == b'\n') {
        let mut updates = Vec::new();
        let refused = reader.read(line, &mut clock, &mut |update| updates.push(update)).is_err();
        assert!(!refused || updates.is_empty(), "what is refused changes nothing");
        for update in &updates {
            if let Update::Slot(slot) = update {
                assert!(slot.users.iter().all(|row| row.user < USERS));
                assert!(slot.users.is_sorted_by(|a, b| a.user < b.user), "sorted, without repetition");
                let last = &mut slots[usize::from(slot.cell.cell)];
                assert!(last.is_none_or(|last| last < slot.slot), "slots have increasing numbers");
                *last = Some(slot.slot);
            }
            let mut written = Vec::new();
            Writer::default().update(update, &mut written);
            again
                .read(&written, &mut clock, &mut |_| {})
                .expect("what was read is written so that it can be read");
        }
    }
    let mut count = 0;
    reader.read(GOOD, &mut clock, &mut |_| count += 1).expect("a good line is read");
    assert_eq!(count, 1);
}

/// A byte selects the query, the rest is the query string of an address: it is used or refused, with a reason that is not much
/// longer than it, and finds nothing where there is nothing.
pub fn rnis_query(data: &[u8]) {
    use ranpace_rnis::etsi::bearers::S1BearerInfo;
    use ranpace_rnis::etsi::{AssociateId, IdType, L2Meas, L2Query, RabQuery, S1Query};
    use ranpace_rnisd::url::form_urlencoded;
    let Some((kind, query)) = data.split_first() else { return };
    let parameters: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let refused = match kind % 3 {
        0 => RabQuery::parse(parameters)
            .map(|query| {
                // An entry of a list contains no comma, so that no query names this user.
                let nobody = AssociateId { id_type: IdType::NatedIp, value: "nobody, nowhere".to_owned() };
                assert_eq!(query.has_user(&[nobody]), query.has_user(&[]));
            })
            .err(),
        1 => S1Query::parse(parameters)
            .map(|query| {
                assert_eq!(query.select(&S1BearerInfo { s1_ue_info: Vec::new(), time_stamp: None }), None)
            })
            .err(),
        _ => L2Query::parse(parameters)
            .map(|query| assert_eq!(query.select(&L2Meas::default()), L2Meas::default()))
            .err(),
    };
    if let Some(reason) = refused {
        // A byte that is escaped in the reason takes up to ten.
        assert!(reason.to_string().len() < 200 + 10 * query.len(), "{reason}");
    }
}

/// Version of the standard (a byte), then a request for a subscription: what is accepted can be kept, shown, sent again as it is shown,
/// and asked about any notification.
pub fn rnis_subscription(data: &[u8]) {
    use ranpace_rnis::etsi::{Notification, Occurrence};
    use ranpace_rnisd::config::Version;
    use ranpace_rnisd::queue::Queue;
    use ranpace_rnisd::store::Kept;
    use ranpace_rnisd::subscriptions::{Entry, Wanted};
    use ranpace_rnisd::viewer::Viewer;
    const HAPPENED: [&[u8]; 3] = [
        br#"{"notificationType":"CellChangeNotification","hoStatus":3,"associateId":[{"type":1,"value":"10.0.0.1"}],
            "srcEcgi":{"cellId":"1","plmn":{"mcc":"001","mnc":"01"}},"trgEcgi":[{"cellId":"2","plmn":{"mcc":"001","mnc":"01"}}]}"#,
        br#"{"notificationType":"RabRelNotification","ecgi":{"cellId":"1","plmn":{"mcc":"001","mnc":"01"}},"erabReleaseInfo":{"erabId":5}}"#,
        br#"{"notificationType":"MeasTaNotification","ecgi":{"cellId":"1","plmn":{"mcc":"001","mnc":"01"}},"timingAdvance":4}"#,
    ];
    let Some((version, body)) = data.split_first() else { return };
    let version = if version % 2 == 0 { Version::V221 } else { Version::V211 };
    let wanted = match Wanted::parse(body, version) {
        Ok(wanted) => wanted,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let kept = Kept {
        id: 1,
        owner: "app".to_owned(),
        viewer: Viewer::default(),
        version,
        body: wanted.body.clone(),
        secret: wanted.websocket.then(|| "secret".to_owned()),
        feed: None,
        revision: 1,
    };
    let entry = Entry::of(kept, Arc::new(Queue::new(1, 0, 0, []))).expect("what was accepted can be kept");
    assert_eq!(entry.subscription, wanted.subscription);
    let shown = entry.representation("http://a/rni/v2/subscriptions/1", "ws://a/notifications").to_string();
    let again = Wanted::parse(shown.as_bytes(), Version::V221).expect("what is shown can be sent again");
    assert_eq!((again.subscription, again.websocket), (wanted.subscription, wanted.websocket), "{shown}");
    for happened in HAPPENED {
        let notification: Notification = serde_json::from_slice(happened).expect("it is a notification");
        let occurrence = Occurrence::of(notification);
        entry.subscription.selects(&occurrence);
        let rendered = entry.render(&occurrence.notification, "http://a");
        serde_json::from_slice::<serde_json::Value>(&rendered).expect("a notification is JSON");
    }
}

/// A configuration of the RNIS server: it is used, and then its keys fit together, or refused with the name of its file.
pub fn rnis_config(data: &[u8]) {
    use ranpace_rnisd::config::Config;
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse("rnis.toml", text) {
        Ok(config) => config.check("rnis.toml").expect("what was used fits together"),
        Err(error) => assert!(error.to_string().contains("rnis.toml"), "{error}"),
    }
}

/// A byte selects the file of the PEP or of a server's agent, the rest is its text: each fault has a line of it.
pub fn pep_config(data: &[u8]) {
    use ranpace_tap::config::{AgentConfig, PepConfig};
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    // Files of secrets are not there, so that each has a fault.
    let faults = if kind % 2 == 0 {
        PepConfig::parse("pep.toml", text).expect_err("a secret was found").faults
    } else {
        AgentConfig::parse("agent.toml", text).expect_err("a secret was found").faults
    };
    assert!(!faults.is_empty());
    for fault in faults {
        assert!(fault.line.is_none_or(|line| (1..=text.split('\n').count()).contains(&line)), "{fault:?}");
        assert!(!fault.reason.is_empty() && fault.reason.len() < 4_096 + 20 * text.len(), "{fault:?}");
    }
}

/// A configuration of `ranpace proxy`: its faults are told, or the allocator can use it.
pub fn proxy_config(data: &[u8]) {
    use ranpace_proxy::config::Config;
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse("proxy.toml", text) {
        Ok(config) => {
            config.settings().check().expect("what was used fits together");
            assert!(config.clients.iter().all(|clients| !clients.networks.is_empty()) && config.port > 0);
        }
        Err(error) => {
            assert!(!error.faults.is_empty() && error.to_string().contains("proxy.toml"), "{error}")
        }
    }
}

/// A bearer token: nobody without the private key makes one that is accepted.
pub fn rnis_token(data: &[u8]) {
    use std::sync::OnceLock;

    use ranpace_rnisd::auth::{Area, Authenticator};
    use ranpace_rnisd::config::{Auth, Config};
    use ranpace_rnisd::futures_util::FutureExt as _;
    static CHECKED_BY: OnceLock<Authenticator> = OnceLock::new();
    let authenticator = CHECKED_BY.get_or_init(|| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = "carriers/rnisd/tests/data/rsa-public.pem";
        // This file is compiled in the fuzzer's package and in that of the test on stable Rust.
        let keys = ["..", "../.."].map(|up| root.join(up).join(file)).into_iter().find(|keys| keys.exists());
        let config = Config { auth: Some(Auth { keys, ..Auth::default() }), ..Config::default() };
        Authenticator::new(&config).expect("the public key of the tests")
    });
    let Ok(token) = std::str::from_utf8(data) else { return };
    let headers = Default::default();
    let subject = authenticator.subject(&headers, Some(token), &[], Area::Queries).now_or_never();
    assert!(
        subject.expect("keys of a file need no waiting").is_err(),
        "a forged token was accepted: {token}"
    );
}

/// Lines for `ranpace kernel feed`: each is read or refused; what was read is within the bounds that controls rely on, and the rates of
/// its resources can be computed.
pub fn hint_lines(data: &[u8]) {
    use ranpace_emulator::HintLine;
    use ranpace_phy::Direction;
    let now = Time::from_secs(100);
    for line in data.split(|byte| *byte == b'\n') {
        let line = match HintLine::parse(line) {
            Ok(HintLine::Radio(line)) => line,
            Ok(HintLine::Pep(line)) => {
                assert!(line.ranges.len() <= 8 && line.hold <= Span::from_secs(60));
                continue;
            }
            Err(why) => {
                assert!(why.contains("expected"), "{why}");
                continue;
            }
        };
        assert!(line.age <= Span::from_secs(60));
        let told = [line.for_receivers(now), line.for_senders(now), line.for_servers(now)];
        for hint in told.into_iter().flatten() {
            assert!((0.0..=f64::from(hint.cell)).contains(&hint.granted));
            assert!((0.0..=f64::from(hint.cell)).contains(&hint.unused));
            assert!(hint.cqi.is_none_or(|cqi| cqi <= 15) && (1..=8).contains(&hint.layers));
            assert!(hint.tti > Span::ZERO && hint.measured_at == now);
        }
        if let Some(hint) = line.for_senders(now) {
            // SIGMA is told what each number of resources carries.
            let rates = hint.info.rates(Direction::Uplink, hint.mcs, hint.layers);
            assert!(rates.take(1 + usize::from(hint.cell)).last().is_some());
        }
    }
}

/// Datagrams of srsRAN's metrics, each behind its length (a byte, in units of 16 bytes): what is passed on is within the cell.
pub fn rnis_srsran(data: &[u8]) {
    use ranpace_rnis::CellInfo;
    use ranpace_rnis::etsi::{Ecgi, Plmn};
    use ranpace_rnis::update::{Cell, Update};
    use ranpace_rnisd::source::SrsranCell;
    use ranpace_rnisd::source::srsran::{Converter, PERIOD, Pieces};
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    let info = CellInfo::lte(0, LteBandwidth::Mhz10);
    let cell = SrsranCell { pci: 1, cell: Cell { info, ecgi: Ecgi { cell_id: "1".to_owned(), plmn } } };
    let (mut converter, mut pieces, mut rest) = (Converter::new(vec![cell], PERIOD), Pieces::default(), data);
    while let Some((length, after)) = rest.split_first() {
        let (datagram, next) = after.split_at((usize::from(*length) * 16).min(after.len()));
        rest = next;
        // Refusals are expected.
        let _ = pieces.take(datagram, &mut |object| {
            let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap_or(0));
            let _ = converter.message(object, &mut clock, &mut |update| {
                if let Update::Slot(slot) = update {
                    assert!((0.0..=50.0).contains(&slot.used_prbs.downlink));
                    assert!(slot.users.is_sorted_by(|a, b| a.user < b.user));
                }
            });
        });
    }
}

/// A byte selects the object, the rest is its text: it is read or refused, and an object that was read can be read again from its
/// own output. For a query, a list of parameters a line: what it selects was there.
pub fn rnis_json(data: &[u8]) {
    use ranpace_rnis::TextReport;
    use ranpace_rnis::etsi::{L2Meas, L2Query, Notification, Subscription};
    fn again<T: serde::Serialize + serde::de::DeserializeOwned>(text: &[u8]) -> Option<(T, T)> {
        let read: T = serde_json::from_slice(text).ok()?;
        let written = serde_json::to_vec(&read).expect("what was read can be written");
        let second = serde_json::from_slice(&written).expect("and read again");
        Some((read, second))
    }
    let Some((kind, text)) = data.split_first() else { return };
    match kind % 5 {
        0 => {
            if let Some((first, second)) = again::<L2Meas>(text) {
                assert_eq!(first, second);
                let nobody = L2Query::parse([("ue_ipv4_address", "nobody")]).expect("a query");
                assert_eq!(nobody.select(&first).cell_ue_info, []);
            }
        }
        1 => drop(again::<Notification>(text)),
        2 => drop(again::<Subscription>(text)),
        3 => {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let parameters = text.lines().map(|line| line.split_once('=').unwrap_or((line, "")));
            if let Ok(query) = L2Query::parse(parameters) {
                assert_eq!(query.select(&L2Meas::default()), L2Meas::default());
            }
        }
        _ => {
            let Ok(text) = std::str::from_utf8(text) else { return };
            if let Ok(report) = text.parse::<TextReport>() {
                assert_eq!(report.to_string().parse(), Ok(report));
            }
        }
    }
}

/// A packet of a program behind a link: its headers are read or not, a mark changes nothing but the mark, and the checksum of IPv4 is
/// as right or wrong as before.
pub fn packet(data: &[u8]) {
    let headers = Headers::read(data);
    let mut marked = data.to_vec();
    set_ecn(&mut marked, ranpace_units::Ecn::Ce);
    assert_eq!(marked.len(), data.len());
    let Some(before) = headers else { return };
    assert!(before.payload as usize <= data.len());
    assert_eq!(Headers::read(&marked), Some(Headers { ecn: ranpace_units::Ecn::Ce, ..before }));
    // The sum in one's complement, in which 0 and 0xffff are the same (RFC 1071).
    let sum = |packet: &[u8]| -> u32 {
        let words = packet.chunks_exact(2).take(10);
        words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() % 0xffff
    };
    if data[0] >> 4 == 4 {
        assert_eq!(sum(&marked), sum(data));
    }
}

/// Three bytes that choose a window and guidance, and a packet that passes a header rewriter: it is a whole TCP segment or left alone;
/// what was written is read, nothing else has changed, and the sums over TCP and IPv4's header are as right or wrong as before.
pub fn tcp_fields(data: &[u8]) {
    use ranpace_emulator::TcpSegment;
    use ranpace_pep::rewriter::TcpFields;
    use ranpace_rnis::guidance::{Guidance, PADDED};
    let Some((&[high, low, guides], packet)) = data.split_first_chunk() else { return };
    let Some(segment) = TcpSegment::read(packet) else { return };
    let rate = Rate::from_bits_per_s(u64::from(guides) * 1_000_000);
    let guidance = (guides > 0).then_some(Guidance { rate, age: Some(Span::from_millis(guides.into())) });
    let changed = TcpFields { window: u16::from_be_bytes([high, low]), guidance, ..segment.fields };
    let mut written = packet.to_vec();
    segment.write(&changed, &mut written, 0, false);
    let read = TcpSegment::read(&written).expect("it is still a segment");
    let added = written.len() - packet.len();
    assert!(added == 0 || added == PADDED && guides > 0);
    assert_eq!((read.from, read.to), (segment.from, segment.to));
    let expected = TcpFields { room: segment.fields.room - added, guidance: None, ..changed };
    assert_eq!(read.fields, expected);
    // Sums in one's complement, in which 0 and 0xffff are the same (RFC 1071).
    let sum = |bytes: &[u8]| -> u64 {
        let pairs = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        pairs.map(u64::from).sum()
    };
    let length = u64::from(segment.fields.payload) + 60 - segment.fields.room as u64;
    let tcp = |packet: &[u8], length: u64| (sum(&packet[packet.len() - length as usize..]) + length) % 0xffff;
    assert_eq!(tcp(packet, length), tcp(&written, length + added as u64));
    if packet[0] >> 4 == 4 {
        let header = usize::from(packet[0] & 0xf) * 4;
        assert_eq!(sum(&packet[..header]) % 0xffff, sum(&written[..header]) % 0xffff);
    }
}

/// A copy of a packet as the tap of the Lightweight PEP reads it: segments follow each other without a gap, nothing is longer than an IP
/// packet, and the PEP counts whatever comes.
pub fn tap(data: &[u8]) {
    use ranpace_pep::lightweight::{Body, Pep, PepSettings};
    let mut pep = Pep::new(PepSettings { flows: 4, ..PepSettings::default() });
    let (mut bytes, mut next) = (0, None);
    let read = ranpace_tap::packet::read(data, |at, packet| {
        bytes += packet.bytes as usize;
        match packet.body {
            Body::Tcp { seq, length, .. } => {
                assert!(next.is_none_or(|next| next == seq), "the parts of a merged segment touch");
                next = Some(seq.wrapping_add(length));
            }
            Body::Opaque { payload, length } => assert!(payload.len() <= length as usize),
        }
        pep.on_packet(at, packet);
    });
    // At most an IP packet, and a TCP header for each of its bytes.
    assert!(bytes <= 65_575 * 61 && (bytes == 0 || read.is_ok()));
}

/// A recording under light load is refused with a reason, or has a length and trains in the order of time, from zero on.
pub fn light_trace(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match LightTrace::parse(text) {
        Ok(trace) => {
            let trains = trace.trains();
            assert!(trains.len() >= 3 && trains[0].at.is_zero() && !trace.duration().is_zero());
            assert!(trains.windows(2).all(|pair| pair[0].at <= pair[1].at));
            assert!(trains.iter().all(|train| !train.opportunities.is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.to_string().len() < 500),
    }
}

/// A trace in pieces is a trace in one piece; what was read can be written and read again; an error has a line.
///
/// The first byte is the length of the pieces.
pub fn trace(data: &[u8]) {
    let Some((&length, text)) = data.split_first() else { return };
    let whole = pieces(text, text.len());
    assert_eq!(pieces(text, usize::from(length)), whole, "pieces of {length}");
    match whole {
        Ok(trace) => {
            let stats = TraceStats::of(&trace);
            assert_eq!(stats.opportunities, trace.iter().map(|(_, count)| u64::from(count)).sum::<u64>());
            assert!(stats.opportunities > 0 && !stats.duration.is_zero());
            assert!(stats.min_second <= stats.max_second && stats.longest_gap <= stats.duration);
            assert_eq!(
                trace.opportunities_between(Time::ZERO, Time::ZERO + stats.duration, false)
                    + trace
                        .iter()
                        .take_while(|(ms, _)| *ms == 0)
                        .map(|(_, count)| u64::from(count))
                        .sum::<u64>(),
                stats.opportunities
            );
            let mut written = Vec::new();
            ranpace_lab::trace_tools::write_mahimahi(&trace, &mut written).expect("memory takes everything");
            assert_eq!(pieces(&written, written.len()), Ok(trace));
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.to_string().len() < 400, "{error}"),
    }
}

fn pieces(text: &[u8], length: usize) -> Result<Trace, TraceError> {
    let mut parser = TraceParser::new();
    for piece in text.chunks(length.max(1)) {
        parser.push(piece)?;
    }
    parser.finish()
}

/// A report of the peer is read or not, is read again as it was written, and whatever it says, a control that takes reports
/// keeps a window and a pace that can be used.
///
/// The first byte chooses the control; the rest are reports, each a byte of length and then so much.
pub fn report(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else { return };
    if let Some(rate) = bw_report::parse_option(rest) {
        assert!(!rate.is_zero());
        assert_eq!(Format::ThesisV2.decode(&Format::ThesisV2.encode(rate)), Some(rate));
    }
    if let Some(guidance) = ranpace_rnis::guidance::Guidance::read(rest) {
        let written = guidance.content();
        assert!(written[..2] == rest[..2] && written[3..] == rest[3..], "all but the flags");
    }
    const CONTROLS: [&str; 11] = [
        "dcic",
        "dcic:guard=off",
        "cqic-s",
        "cqic-s:guard=off",
        "cdbe",
        "cdbe:guard=off",
        "cdbev2",
        "quic-cqic",
        "cdbev2:report=exp",
        "pbe",
        "pbe:guard=off",
    ];
    let name = CONTROLS[usize::from(first) % CONTROLS.len()];
    let algorithm: Algorithm = name.parse().expect("it is one of ours");
    let mut control = algorithm.build(u64::from(first));
    let mut w = Window::new(10.0);
    let mut cx = Context {
        now: Time::from_secs(1),
        mss: Bytes::new(1_448),
        wire: Bytes::new(1_500),
        srtt: Span::from_millis(40),
        min_rtt: Span::from_millis(40),
        in_flight: 10,
        delivered: 0,
        lost: 0,
        next_packet: 10,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    };
    control.on_start(&cx, &mut w);
    while let Some((&length, text)) = rest.split_first() {
        let (content, after) = text.split_at(usize::from(length % 32).min(text.len()));
        rest = after;
        cx.now += Span::from_millis(1 + u64::from(length));
        cx.delivered += 1;
        if let Some(report) = ReceiverReport::new(content) {
            control.on_report(&cx, &mut w, &report);
        }
        let rtt = Span::from_millis(40 + u64::from(length));
        let sample = Sample {
            delivered: 1,
            bytes: cx.mss,
            rtt: Some(rtt),
            one_way: Some(rtt / 2),
            in_flight_at_send: 10,
        };
        control.on_sample(&cx, &mut w, &sample);
        let ack = Ack {
            acked: 1,
            delivered: 1,
            bytes: cx.mss,
            rtt: Some(rtt),
            rate: RateSample::default(),
            prior_in_flight: 10,
            ecn_echo: false,
            marked: 0,
            braked: 0,
        };
        control.on_ack(&cx, &mut w, &ack);
        assert!(w.cwnd.is_finite() && w.cwnd >= 1.0, "{name}: {w:?}");
        assert!(!matches!(w.pacing, Pacing::Rate(rate) if rate.is_zero()), "{name}: {w:?}");
    }
}

/// A log of rates gives rates that are not negative, or an error with a line.
///
/// The first byte chooses the format.
pub fn log(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    let unit = RateUnit::KBIT;
    let csv = |clock, rate: &str, interval| LogFormat::Csv { clock, rate: rate.to_owned(), unit, interval };
    let format = match first % 5 {
        0 => LogFormat::ucc_5g(false),
        1 => csv(Clock::Rows, "r", Span::SECOND),
        2 => csv(Clock::Column("t".to_owned(), TimeUnit::Seconds), "r", Span::from_millis(100)),
        3 => csv(Clock::Column("t".to_owned(), TimeUnit::Nanos), "r", Span::from_secs(60)),
        _ => LogFormat::Pairs { time: TimeUnit::Millis, rate: unit, interval: Span::SECOND },
    };
    match read_log_text(text, &format) {
        Ok(series) => {
            assert!(!series.rates.is_empty());
            assert!(series.rates.iter().all(|rate| (0.0..=1e14).contains(rate)));
            // Long gaps and fast links would take the fuzzer's time and memory.
            if series.rates.len() < 100 && series.rates.iter().sum::<f64>() < 1e9 {
                let interval = series.interval.as_secs_f64();
                let bits: f64 = series.rates.iter().map(|rate| rate * interval).sum();
                if let Ok(trace) = series.trace() {
                    assert!(trace.opportunities() as f64 * 12_000.0 <= bits + 1.0);
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("line "), "{error}"),
    }
}

/// Has the traces and the radio files of the corpus.
struct Two;

impl TraceSource for Two {
    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        match name {
            "drive.csv" => Ok("time_s,sinr_db,cqi\n0,10,7\n1,-20,0\n1.5,40,15\n".into()),
            "walk.csv" => Ok("time_s,x_m,y_m\n0,0,0\n0.02,10,10\n".into()),
            "fading.txt" => Ok("0 1 -30\n".repeat(6).into()),
            _ => Err("not here".to_owned()),
        }
    }
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        if !name.starts_with("builtin:") {
            return Err("not here".to_owned());
        }
        Trace::from_millis(1..=100).map(Arc::new).map_err(|error| error.to_string())
    }
}

/// A scenario is sound, or every error has a place in the text.
pub fn scenario(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    // Flows are kept one by one; a few hundred thousand of them would only take the fuzzer's memory.
    if text.contains("count") && text.len() > 4_096 {
        return;
    }
    match parse(text, "fuzz.toml", &mut Two) {
        Ok(scenario) => sound(&scenario),
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            let lines = text.matches('\n').count() + 1;
            for diagnostic in &error.diagnostics {
                let place = diagnostic.position.expect("errors of parsing have a place");
                assert!(place.line >= 1 && place.line <= lines && place.column >= 1, "{error}");
            }
        }
    }
}

fn sound(scenario: &Scenario) {
    assert!(scenario.warmup < scenario.duration && !scenario.sample.is_zero());
    assert!(!scenario.flows.is_empty());
    assert!(!scenario.links.is_empty() || !scenario.cells.is_empty());
    assert!(scenario.cells.iter().all(|cell| cell.config.check(0).is_ok()));
    for flow in &scenario.flows {
        for (path, from, to) in [(&flow.path, flow.from, flow.to), (&flow.back, flow.to, flow.from)] {
            // Some flows have no way back.
            if path.is_empty() {
                continue;
            }
            let end = path.iter().fold(from, |here, &hop| {
                let (begins, ends) = scenario.ends(hop);
                assert_eq!(begins, here, "a path does not hang together");
                ends
            });
            assert_eq!(end, to, "a path ends elsewhere");
        }
    }
}

/// A scenario with cells is played for a few slots, and accounts for every byte.
pub fn cell(data: &[u8]) {
    /// More only take time.
    const MOST: usize = 40;
    const MOST_RATE: Rate = Rate::from_mbit_per_s(2_000);
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(mut scenario) = parse(text, "fuzz.toml", &mut Two) else { return };
    let is_fast = |rate: &Rate| *rate > MOST_RATE;
    let many =
        [scenario.users.len(), scenario.flows.len(), scenario.changes.len()].into_iter().any(|n| n > MOST);
    let fast_link = |service: &Service| !matches!(service, Service::Fixed(rate) if !is_fast(rate));
    let fast_flow = scenario.flows.iter().any(|flow| match &flow.workload {
        Workload::Paced { rate, interval } => is_fast(rate) || *interval < Span::from_millis(1),
        Workload::Cbr { rate } => is_fast(rate),
        Workload::Ppbp { rate, active_mean, burst_mean, .. } => {
            rate.as_f64() * active_mean > MOST_RATE.as_f64() || *burst_mean < Span::from_millis(1)
        }
        Workload::Web { interval, .. } => *interval < Span::from_millis(1),
        _ => false,
    });
    let small = |flow: &ranpace_scenario::FlowSpec| matches!(flow.transport, Transport::Udp { packet, .. } if packet < Bytes::new(100));
    let fast_change =
        |change: &ChangeKind| matches!(change, ChangeKind::LinkRate { rate, .. } if is_fast(rate));
    if scenario.cells.is_empty()
        || scenario.cells.len() > 8
        || many
        || fast_flow
        || scenario.flows.iter().any(small)
        || scenario.links.iter().any(|link| fast_link(&link.config.service))
        || scenario.changes.iter().any(|change| fast_change(&change.what))
    {
        return;
    }
    let most = Span::from_millis(50);
    if scenario.duration > most {
        // Events of the whole run are moved into the part that is played.
        let share = most.ratio(scenario.duration);
        for change in &mut scenario.changes {
            change.at = Time::ZERO + change.at.since(Time::ZERO).mul_f64(share);
        }
        for flow in &mut scenario.flows {
            flow.start = Time::ZERO + flow.start.since(Time::ZERO).mul_f64(share);
            flow.stop = flow.stop.map(|stop| Time::ZERO + stop.since(Time::ZERO).mul_f64(share));
        }
        (scenario.duration, scenario.warmup) = (most, scenario.warmup.mul_f64(share));
        scenario.sample = scenario.sample.max(Span::from_millis(5));
    } else {
        scenario.sample = scenario.sample.max(scenario.duration / 20);
    }
    let result = Simulation::new(&scenario).run();
    assert!(result.ledger.balances(), "{:?}", result.ledger);
    for cell in &result.cells {
        for share in [cell.downlink_prb_share, cell.uplink_prb_share] {
            assert!((0.0..=1.0 + 1e-9).contains(&share), "{}: {share}", cell.name);
        }
    }
}

/// A file of radio conditions gives numbers that can be played at any time, or an error that says what was expected.
///
/// The first byte chooses the kind of file.
pub fn radio(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    let Ok(text) = core::str::from_utf8(text) else { return };
    let error = match first % 4 {
        0 => recording(Recording::parse(text)),
        1 => recording(Recording::parse_5g_log(text)),
        2 => fading(text),
        _ => trajectory(text),
    };
    if let Some(error) = error {
        let text = error.to_string();
        assert!(text.starts_with("line ") || text.starts_with("expected "), "{text}");
    }
}

/// Times at the edges of something so long.
fn odd_times(length: Span) -> [Span; 8] {
    let short = Span::from_nanos(1);
    [Span::ZERO, short, length / 3, length - short, length, length + short, length * 7 + short, Span::MAX]
}

fn recording(read: Result<Recording, RecordingError>) -> Option<RecordingError> {
    let recording = match read {
        Ok(recording) => recording,
        Err(error) => return Some(error),
    };
    let samples = recording.samples();
    assert!(recording.count() == samples.len() && samples[0].0 == Time::ZERO);
    assert!(samples.windows(2).all(|pair| pair[0].0 < pair[1].0), "time runs backwards");
    assert!(samples[samples.len() - 1].0 <= Time::ZERO + recording.length() && !recording.length().is_zero());
    for after in samples.iter().map(|(time, _)| time.since(Time::ZERO)).chain(odd_times(recording.length())) {
        let found = recording.at(after);
        for number in [found.sinr_db, found.rsrp_dbm, found.gain_db].into_iter().flatten() {
            assert!((-1_000.0..=1_000.0).contains(&number), "{found:?} after {after}");
        }
    }
    None
}

fn fading(text: &str) -> Option<RecordingError> {
    let groups = Groups::lte(LteBandwidth::Mhz1_4.prbs());
    let every = Span::from_millis(1);
    match RecordedFading::parse(text, &groups, every) {
        Ok(fading) => {
            let mut gains = vec![0.0; groups.count() + 1];
            for start in odd_times(Span::SECOND).into_iter().chain([fading.draw_start(1, 2)]) {
                for now in odd_times(Span::SECOND) {
                    fading.gains(start, Time::ZERO + now, &mut gains);
                    assert!(gains.iter().all(|gain| gain.is_finite() && *gain >= 0.0), "{gains:?}");
                }
            }
            None
        }
        Err(error) => Some(error),
    }
}

fn trajectory(text: &str) -> Option<RecordingError> {
    let path = match Trajectory::parse(text) {
        Ok(path) => path,
        Err(error) => return Some(error),
    };
    for now in odd_times(path.end().since(Time::ZERO)) {
        let motion = path.at(Time::ZERO + now);
        let Position { x, y, z } = motion.position;
        assert!([x, y, z].into_iter().all(|metres| metres.abs() <= 1e7), "{motion:?}");
        assert!(motion.speed_m_s.is_finite() && motion.speed_m_s >= 0.0 && motion.travelled_m >= 0.0);
    }
    None
}

/// A varied scenario is still TOML, and parsing it is survived.
///
/// Two lines, key and value, and then the scenario.
pub fn vary(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let (Some(key), Some(value), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return };
    if let Ok(varied) = ranpace_scenario::vary(rest, key, value) {
        assert!(varied.parse::<toml_edit::DocumentMut>().is_ok(), "no TOML any more: {varied}");
        scenario(varied.as_bytes());
    }
}

/// A change that `ranpace lab` makes in a scenario is refused, or what it writes is still TOML, and parsing it is survived.
///
/// A line with the edit as JSON, and then the scenario.
pub fn lab_edit(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Some((edit, rest)) = text.split_once('\n') else { return };
    let Ok(edit) = serde_json::from_str::<ranpace_web::protocol::Edit>(edit) else { return };
    if let Ok(change) = ranpace_web::edit(rest, &edit, Time::from_millis(1_500)) {
        // Another text is what was sent.
        let is_sent = matches!(edit, ranpace_web::protocol::Edit::Replace { .. });
        assert!(
            is_sent || change.text.parse::<toml_edit::DocumentMut>().is_ok(),
            "no TOML any more: {}",
            change.text
        );
        scenario(change.text.as_bytes());
    }
}

/// An algorithm that is understood can be built, and is understood again as it prints itself.
pub fn algorithm(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match text.parse::<Algorithm>() {
        Ok(algorithm) => {
            drop((algorithm.build(1), algorithm.receiver()));
            assert_eq!(algorithm.to_string().parse::<Algorithm>().as_ref(), Ok(&algorithm));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A quantity that is understood is understood again as it prints itself.
pub fn units(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        assert_eq!(bytes.to_string().parse(), Ok(bytes));
    }
}

/// Messages of the Lightweight PEP's channel: whatever comes is a message or refused, what was read is written as it was, and
/// neither end lets through what has no seal.
///
/// The first byte is the flags, the second says what the rest is.
pub fn pep(data: &[u8]) {
    use ranpace_pep::lightweight::message::{Buffer, Header, ReportMessage, Resync, Subscribe};
    use ranpace_pep::lightweight::{Agent, Gaps, Pep, PepSettings};
    let [flags, what, rest @ ..] = data else { return };
    let mut out = Buffer::default();
    match what % 5 {
        0 => {
            if let Ok(header) = Header::read(rest) {
                header.write(&mut out);
                assert_eq!(out.as_slice(), &rest[..out.as_slice().len()]);
            }
        }
        1 => {
            if let Ok(report) = ReportMessage::read(*flags, rest) {
                report.write(&mut out);
                assert_eq!(out.as_slice(), rest);
            }
        }
        2 => {
            if let Ok(wanted) = Subscribe::read(rest) {
                wanted.write(&mut out);
                assert_eq!(out.as_slice(), rest);
            }
            if let Ok(resync) = Resync::read(rest) {
                let mut out = Buffer::default();
                resync.write(&mut out);
                assert_eq!(out.as_slice(), rest);
            }
        }
        3 => {
            let mut agent = Agent::new(b"secret", 1, 1, Subscribe::new([1; 32], [2; 16]));
            let mut datagram = rest.to_vec();
            assert!(agent.on_datagram(Time::ZERO, &mut datagram).is_err());
            let mut pep = Pep::new(PepSettings::default());
            pep.add_server([1; 16], b"secret", 1);
            pep.on_datagram(Time::ZERO, [1; 16], &mut datagram);
            assert_eq!(pep.stats().refused, 1);
        }
        _ => {
            // Segments of a flow, in any order: four bytes where they begin, one how long they are.
            let mut gaps = Gaps::default();
            for (step, segment) in rest.chunks_exact(5).enumerate() {
                let seq = u32::from_be_bytes([segment[0], segment[1], segment[2], segment[3]]);
                let now = Time::ZERO + Span::from_micros(500) * step as u64;
                if !gaps.on_segment(now, seq, u32::from(segment[4])) {
                    gaps.restart(seq);
                }
                let view = gaps.view(now).expect("something came");
                let mut last = 0;
                for (start, end) in view.ranges() {
                    let (from, to) = (start.wrapping_sub(view.cumulative), end.wrapping_sub(view.cumulative));
                    assert!(from > last && to > from, "{view:?}");
                    last = to;
                }
            }
        }
    }
}

/// A packet that the proxy holds: what is read of it stands in the packet, and a SYN that is cut before its options' end is none.
pub fn syn(data: &[u8]) {
    use ranpace_proxy::syn::Syn;
    let Some(syn) = Syn::parse(data) else { return };
    let holds = |bytes: &[u8]| data.windows(bytes.len()).any(|part| part == bytes);
    assert_eq!(syn.ends.client.is_ipv4(), syn.ends.server.is_ipv4());
    for end in [syn.ends.client, syn.ends.server] {
        match end.ip() {
            std::net::IpAddr::V4(ip) => assert!(data[0] >> 4 == 4 && holds(&ip.octets())),
            std::net::IpAddr::V6(ip) => assert!(data[0] >> 4 == 6 && holds(&ip.octets())),
        }
        assert!(holds(&end.port().to_be_bytes()));
    }
    assert!(holds(&syn.number.to_be_bytes()));
    if let Some(mss) = syn.mss {
        let [high, low] = mss.to_be_bytes();
        assert!(holds(&[2, 4, high, low]));
    }
    for length in 0..data.len().min(40) {
        assert_eq!(Syn::parse(&data[..length]), None, "cut at {length}");
    }
}

/// DATAGRAM frames of a QUIC connection, each behind its length in a byte: each is a report or refused, what was read is written as it
/// was, and what is passed on has increasing numbers and is no rate of zero.
pub fn receiver_report(data: &[u8]) {
    use ranpace_quic::reports::{Freshness, MOST_BYTES, NumberedReport};
    let (mut freshness, mut newest, mut now, mut rest) =
        (Freshness::default(), None::<u32>, Time::ZERO, data);
    while let Some((&length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        now += Span::from_millis(length.into());
        let Ok(report) = NumberedReport::parse(frame) else { continue };
        assert!(frame.len() <= MOST_BYTES);
        if report.made_at < Time::MAX {
            assert_eq!(report.encode(), frame);
        }
        if freshness.check(now, &report).is_err() {
            continue;
        }
        assert!(newest.is_none_or(|newest| report.number > newest));
        newest = Some(report.number);
        for format in [Format::V1, Format::ThesisV2, Format::Experiment, Format::Bare, Format::PacketInterval]
        {
            assert!(format.decode(&report.report).is_none_or(|rate| !rate.is_zero()));
        }
    }
}

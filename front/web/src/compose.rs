//! Writes scenarios from their parts, and changes of running scenarios, as TOML.

use ranpace_scenario::cells::{BASE, by_name};
use ranpace_units::{Bytes, Rate, Span, Time};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::problem::Refusal;
use crate::protocol::{Access, Build, BuildFlow, BuildUser, Edit, Feed, FeedContent};

/// Interval between rows if none is asked for: as often as the page draws.
const SAMPLE: Span = Span::from_millis(50);
/// Rate towards the server of a recording without one of its own, as for `ranpace compare`.
const REVERSE: Rate = Rate::from_mbit_per_s(48);
/// Host of a flow's other end.
const SERVER: &str = "server";
/// Host of the only phone behind a link.
const PHONE: &str = "phone";

/// A change that is written into a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The new text.
    pub text: String,
    /// When it takes effect.
    pub at: Time,
    /// What it is, in words.
    pub what: String,
}

/// The text of a scenario made of these parts. It is not checked further: the parser does that.
pub fn build(parts: &Build) -> Result<String, Refusal> {
    let mut document = DocumentMut::new();
    let top = document.as_table_mut();
    top.insert("name", value(parts.name.as_str()));
    top.insert("duration", value(written("duration_s", parts.duration_s)?));
    top.insert("seed", value(i64::from(parts.seed)));
    let sample = parts.sample_s.map_or(Ok(SAMPLE.to_string()), |sample| written("sample_s", sample))?;
    top.insert("sample", value(sample));
    match &parts.access {
        Access::Link { rate_bit_s, rtt_s, queue, buffer_bytes } => {
            let rate = value(rate("rate_bit_s", *rate_bit_s)?.to_string());
            write_link(top, [("rate", rate.clone())].into(), ("rate", rate), *rtt_s, queue, *buffer_bytes)?;
        }
        Access::Recording { down, up, scale, rtt_s, queue, buffer_bytes } => {
            let back = match up {
                Some(up) => ("trace", value(up.as_str())),
                None => ("rate", value(REVERSE.to_string())),
            };
            let forth = [("trace", value(down.as_str())), ("scale", value(*scale))];
            write_link(top, forth.into(), back, *rtt_s, queue, *buffer_bytes)?;
        }
        Access::Cell { preset, rtt_s, users } => write_cell(top, preset, *rtt_s, users)?,
    }
    if let Some(feed) = &parts.feed {
        let mut table = Table::new();
        table.insert("delay", value(written("feed.delay_s", feed.delay_s)?));
        table.insert("error", value(feed.error));
        match word(feed.content) {
            "none" => table.insert("stop", value("0s")),
            content => table.insert("content", value(content)),
        };
        top.insert("rnis", Item::Table(table));
    }
    if parts.rapid {
        let proxy = [("name", value("edge")), ("host", value(BASE)), ("kind", value("rapid"))];
        push(top, "proxy", proxy.into())?;
    }
    for flow in &parts.flows {
        let entry = flow_entry(top, flow, None)?;
        push(top, "flow", entry)?;
    }
    Ok(document.to_string())
}

type Entry = Vec<(&'static str, Item)>;

/// The link "down" and the link "up" back, with half of the round-trip time each.
fn write_link(
    top: &mut Table,
    forth: Entry,
    (key, service): (&'static str, Item),
    rtt_s: f64,
    queue: &str,
    buffer_bytes: Option<f64>,
) -> Result<(), Refusal> {
    let rtt = span("rtt_s", rtt_s)?;
    let ends = |from: &str, to: &str| [("from", value(from)), ("to", value(to))];
    let mut down: Entry =
        [("name", value("down"))].into_iter().chain(ends(SERVER, PHONE)).chain(forth).collect();
    down.push(("delay", value((rtt / 2).to_string())));
    let mut kind = InlineTable::new();
    kind.insert("kind", queue.into());
    if let Some(bytes) = buffer_bytes {
        kind.insert("limit", Bytes::new(whole("buffer_bytes", bytes)?).to_string().into());
    }
    down.push(("queue", Item::Value(kind.into())));
    push(top, "link", down)?;
    let mut up: Entry = [("name", value("up"))].into_iter().chain(ends(PHONE, SERVER)).collect();
    up.extend([(key, service), ("delay", value((rtt - rtt / 2).to_string()))]);
    push(top, "link", up)
}

/// A cell behind a link of 1 Gbit/s.
fn write_cell(top: &mut Table, preset: &str, rtt_s: f64, users: &[BuildUser]) -> Result<(), Refusal> {
    if by_name(preset).is_none() {
        return Err(Refusal::impossible(format!(
            "preset: no cell is called {preset:?}; /api/sources lists the presets"
        )));
    }
    let delay = span("rtt_s", rtt_s)? / 2;
    let core = [
        ("name", value("core")),
        ("from", value(SERVER)),
        ("to", value(BASE)),
        ("rate", value("1Gbit/s")),
        ("delay", value(delay.to_string())),
        ("duplex", value(true)),
    ];
    push(top, "link", core.into())?;
    push(top, "cell", [("name", value("cell")), ("host", value(BASE)), ("preset", value(preset))].into())?;
    for BuildUser { name, x_m, y_m } in users {
        push(top, "user", [("name", value(name.as_str())), ("position", position(*x_m, *y_m))].into())?;
    }
    Ok(())
}

/// A flow as an entry; `now` is when it starts unless it says so.
fn flow_entry(top: &Table, flow: &BuildFlow, now: Option<Time>) -> Result<Entry, Refusal> {
    let users = names(top, "user");
    let user = match &flow.user {
        Some(user) => user.clone(),
        None if users.len() <= 1 => users.first().map_or(PHONE, String::as_str).to_owned(),
        None => {
            return Err(Refusal::impossible(format!(
                "flow: expected `user`, one of {}, as there are several",
                users.join(", ")
            )));
        }
    };
    let name = flow.name.clone().unwrap_or_else(|| free_name(top, "flow"));
    let (from, to) = if flow.upload { (user.as_str(), SERVER) } else { (SERVER, user.as_str()) };
    let mut entry: Entry = vec![("name", value(name)), ("from", value(from)), ("to", value(to))];
    entry.push(("cc", value(flow.cc.as_str())));
    match (flow.start_s, now) {
        (Some(start), _) => entry.push(("start", value(written("start_s", start)?))),
        (None, Some(now)) => entry.push(("start", value(now.to_string()))),
        (None, None) => {}
    }
    if let Some(stop) = flow.stop_s {
        entry.push(("stop", value(written("stop_s", stop)?)));
    }
    if let Some(workload) = &flow.workload {
        let parsed = workload.trim().parse::<Value>();
        // A bare word is that of a kind.
        let workload = parsed.unwrap_or_else(|_| Value::from(workload.trim()));
        let kind = workload.as_inline_table().and_then(|table| table.get("kind")).unwrap_or(&workload);
        if matches!(kind.as_str(), Some("cbr" | "ppbp")) {
            entry.retain(|(key, _)| *key != "cc");
            entry.push(("transport", value("udp")));
        }
        entry.push(("workload", Item::Value(workload)));
    }
    Ok(entry)
}

/// Writes a change from `at` on into a text that was parsed before.
pub fn edit(text: &str, edit: &Edit, at: Time) -> Result<Change, Refusal> {
    if let Edit::Replace { text } = edit {
        return Ok(Change {
            text: text.clone(),
            at: Time::ZERO,
            what: "the scenario is replaced".to_owned(),
        });
    }
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| Refusal::ours(error.message()))?;
    let top = document.as_table_mut();
    let time = ("at", value(at.to_string()));
    let what = match edit {
        Edit::MoveUser { user, x_m, y_m, speed_m_s } => {
            let mut entry: Entry =
                vec![time, ("user", value(user.as_str())), ("position", position(*x_m, *y_m))];
            if let Some(speed) = speed_m_s {
                entry.push(("speed", value(format!("{}m/s", finite("speed_m_s", *speed)?))));
            }
            push(top, "change", entry)?;
            format!("{user} moves to {x_m} m, {y_m} m")
        }
        Edit::AddFlow { flow } => {
            let entry = flow_entry(top, flow, Some(at))?;
            let what = format!("{} starts", text_of(&entry, "name"));
            push(top, "flow", entry)?;
            what
        }
        Edit::StopFlow { flow } => {
            entry_of(top, "flow", flow)?.insert("stop", value(at.to_string()));
            format!("{flow} stops")
        }
        Edit::ReplaceFlow { flow, cc } => {
            let mut successor = copy(entry_of(top, "flow", flow)?);
            entry_of(top, "flow", flow)?.insert("stop", value(at.to_string()));
            let name = free_name(top, flow);
            successor.insert("name", value(name.as_str()));
            successor.insert("cc", value(cc.as_str()));
            successor.insert("start", value(at.to_string()));
            successor.remove("stagger");
            push_table(top, "flow", successor)?;
            format!("{flow} stops, {name} starts with {cc}")
        }
        Edit::SetTarget { flow, target_s } => {
            let target = ("target", value(written("target_s", *target_s)?));
            push(top, "change", [time, ("flow", value(flow.as_str())), target].into())?;
            format!("{flow} asks for a delay of {}", span("target_s", *target_s)?)
        }
        Edit::SetLink { link, rate_bit_s, delay_s } => {
            let mut entry: Entry = vec![time, ("link", value(link.as_str()))];
            let mut what = link.clone();
            if let Some(bits) = rate_bit_s {
                let rate = rate("rate_bit_s", *bits)?;
                entry.push(("rate", value(rate.to_string())));
                what += &format!(" has {rate}");
            }
            if let Some(delay) = delay_s {
                let delay = span("delay_s", *delay)?;
                entry.push(("delay", value(delay.to_string())));
                what += &format!(" has a delay of {delay}");
            }
            push(top, "change", entry)?;
            what
        }
        Edit::SetFeed { feed, content } => {
            let name = match feed {
                Feed::Rnis => "rnis",
                Feed::Modem => "modem",
            };
            let content = word(*content);
            push(top, "change", [time, ("feed", value(name)), ("content", value(content))].into())?;
            format!("reports of {name}: {content}")
        }
        Edit::HandOver { user, to } => {
            push(top, "change", [time, ("user", value(user.as_str())), ("to", value(to.as_str()))].into())?;
            format!("{user} is handed over to {to}")
        }
        Edit::Replace { .. } => String::new(), // handled before
    };
    Ok(Change { text: document.to_string(), at, what })
}

/// Content of reports, as a change of a feed has it.
fn word(content: FeedContent) -> &'static str {
    match content {
        FeedContent::None => "none",
        FeedContent::Measured => "measured",
        FeedContent::Full => "full",
        FeedContent::Empty => "empty",
        FeedContent::Random => "random",
    }
}

fn value(of: impl Into<Value>) -> Item {
    Item::Value(of.into())
}

fn position(x_m: f64, y_m: f64) -> Item {
    value(Array::from_iter([x_m, y_m]))
}

fn text_of<'a>(entry: &'a Entry, key: &str) -> &'a str {
    entry.iter().find(|(own, _)| *own == key).and_then(|(_, item)| item.as_str()).unwrap_or_default()
}

/// A number that is one.
fn finite(name: &str, number: f64) -> Result<f64, Refusal> {
    if number.is_finite() {
        return Ok(number);
    }
    Err(Refusal::impossible(format!("{name}: expected a finite number, found {number}")))
}

/// A whole number from 0 to 2^53, beyond which JavaScript has none.
fn whole(name: &str, number: f64) -> Result<u64, Refusal> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    if (0.0..=MOST).contains(&number) {
        return Ok(number.round() as u64);
    }
    Err(Refusal::impossible(format!("{name}: expected a number from 0 to 2^53, found {number}")))
}

fn rate(name: &str, bits: f64) -> Result<Rate, Refusal> {
    Ok(Rate::from_bits_per_s(whole(name, bits)?))
}

/// A time of seconds, to the nanosecond.
fn span(name: &str, seconds: f64) -> Result<Span, Refusal> {
    /// A scenario's longest times: 1000 days.
    const MOST: f64 = 86_400_000.0;
    if (0.0..=MOST).contains(&seconds) {
        return Ok(Span::from_secs_f64(seconds));
    }
    Err(Refusal::impossible(format!("{name}: expected seconds from 0 to {MOST}, found {seconds}")))
}

fn written(name: &str, seconds: f64) -> Result<String, Refusal> {
    span(name, seconds).map(|span| span.to_string())
}

/// The entries of `[[kind]]`, whichever way they are written.
fn entries<'a>(top: &'a Table, kind: &str) -> Vec<&'a dyn TableLike> {
    match top.get(kind) {
        Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| table as &dyn TableLike).collect(),
        Some(Item::Value(Value::Array(list))) => {
            list.iter().filter_map(Value::as_inline_table).map(|table| table as &dyn TableLike).collect()
        }
        _ => Vec::new(),
    }
}

/// The names of the entries of `[[kind]]`: as written, or by position.
pub fn names(top: &Table, kind: &str) -> Vec<String> {
    let named = |(index, entry): (usize, &dyn TableLike)| {
        let name = entry.get("name").and_then(Item::as_str);
        name.map_or_else(|| format!("{kind}{}", index + 1), str::to_owned)
    };
    entries(top, kind).into_iter().enumerate().map(named).collect()
}

/// The entry of `[[kind]]` with this name.
fn entry_of<'a>(top: &'a mut Table, kind: &str, name: &str) -> Result<&'a mut dyn TableLike, Refusal> {
    let names = names(top, kind);
    let Some(index) = names.iter().position(|own| own == name) else {
        return Err(Refusal::impossible(format!(
            "{kind}: there is none called {name:?}; expected one of {}",
            names.join(", ")
        )));
    };
    let found: Option<&mut dyn TableLike> = match top.get_mut(kind) {
        Some(Item::ArrayOfTables(tables)) => tables.get_mut(index).map(|table| table as &mut dyn TableLike),
        Some(Item::Value(Value::Array(list))) => {
            list.get_mut(index).and_then(Value::as_inline_table_mut).map(|table| table as &mut dyn TableLike)
        }
        _ => None,
    };
    found.ok_or_else(|| Refusal::ours(format!("{kind} {name:?} cannot be changed")))
}

/// A name that no flow has yet, nor any of those that a `count` makes: `stem` with a number behind it.
fn free_name(top: &Table, stem: &str) -> String {
    let taken = names(top, "flow");
    // "flow-2" becomes "flow-3", and not "flow-2-2".
    let base = match stem.rsplit_once('-') {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => stem,
    };
    let from = if taken.iter().any(|name| name == base) { 2 } else { 1 };
    let candidates =
        (from..).map(|number| if number == 1 { base.to_owned() } else { format!("{base}-{number}") });
    // Names are fewer than numbers.
    candidates.into_iter().find(|name| !taken.contains(name)).unwrap_or_default()
}

/// A copy of an entry without its place in the file: tables in it become inline.
fn copy(entry: &dyn TableLike) -> Table {
    let mut copy = Table::new();
    for (key, item) in entry.iter() {
        let mut item = item.clone();
        item.make_value();
        copy.insert(key, item);
    }
    copy
}

/// Appends an entry to `[[kind]]`.
fn push(top: &mut Table, kind: &str, entry: Entry) -> Result<(), Refusal> {
    let mut table = Table::new();
    for (key, item) in entry {
        table.insert(key, item);
    }
    push_table(top, kind, table)
}

fn push_table(top: &mut Table, kind: &str, table: Table) -> Result<(), Refusal> {
    match top.entry(kind).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new())) {
        Item::ArrayOfTables(tables) => tables.push(table),
        Item::Value(Value::Array(list)) => list.push(Value::InlineTable(table.into_inline_table())),
        _ => return Err(Refusal::ours(format!("{kind} is not a list of tables"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ranpace_lab::TraceLibrary;

    const CELL: &str = "duration = \"9s\"\n[[cell]]\nname = \"cell\"\n[[user]]\nname = \"phone\"\n\n# The flow.\n[[flow]]\n\
                        name = \"bulk\"\nfrom = \"cell\"\nto = \"phone\"\ncc = \"cubic\"\n[flow.tcp]\ninitial_window = 4\n\n[rnis]\nerror = 0.1\n";

    fn changed(text: &str, change: &Edit) -> String {
        let written = edit(text, change, Time::from_millis(1_500)).unwrap().text;
        let parsed = TraceLibrary::new([]).confined().parse(&written, "scenario.toml");
        assert!(parsed.is_ok(), "{:?}\n{written}", parsed.err());
        written
    }

    #[test]
    fn a_replaced_flow_keeps_its_settings_and_the_text_its_comments() {
        let replace = |flow: &str, cc: &str| Edit::ReplaceFlow { flow: flow.to_owned(), cc: cc.to_owned() };
        let text = changed(CELL, &replace("bulk", "bbr1"));
        assert!(text.contains("# The flow.\n[[flow]]\nname = \"bulk\""), "{text}");
        assert!(text.contains("cc = \"cubic\"\nstop = \"1.5s\"\n[flow.tcp]\ninitial_window = 4\n"), "{text}");
        let successor = text.split("[[flow]]").nth(2).unwrap();
        for part in ["name = \"bulk-2\"", "cc = \"bbr1\"", "initial_window = 4", "start = \"1.5s\""] {
            assert!(successor.contains(part), "{part}: {text}");
        }
        assert!(!successor.contains("stop"), "{text}");
        let again = edit(&text, &replace("bulk-2", "cubic"), Time::from_secs(2)).unwrap();
        assert!(again.text.contains("name = \"bulk-3\"") && again.what.contains("bulk-3"), "{}", again.text);
    }

    #[test]
    fn entries_in_a_list_are_changed_like_tables() {
        let text = "duration = \"9s\"\nlink = [{ from = \"server\", to = \"phone\", rate = \"1Mbit/s\", duplex = true }]\n\
                    flow = [{ from = \"server\", to = \"phone\", cc = \"cubic\" }]\n";
        let text = changed(text, &Edit::StopFlow { flow: "flow1".to_owned() });
        assert!(text.contains("cc = \"cubic\"") && text.contains("stop = \"1.5s\""), "{text}");
        let flow = BuildFlow {
            name: None,
            user: None,
            upload: true,
            cc: "newreno".to_owned(),
            start_s: None,
            stop_s: Some(3.0),
            workload: Some("bulk".to_owned()),
        };
        let text = changed(&text, &Edit::AddFlow { flow });
        assert!(text.contains("from = \"phone\", to = \"server\""), "{text}");
        let link = Edit::SetLink { link: "link1".to_owned(), rate_bit_s: Some(5e5), delay_s: Some(0.001) };
        assert!(changed(&text, &link).contains("rate = \"500kbit/s\"\ndelay = \"1ms\""));
    }

    /// Numbers, and what is none.
    fn numbers() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), -10.0..1e4]
    }

    /// Names that there are, and texts that would leave a string.
    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("phone".to_owned()),
            Just("bulk".to_owned()),
            Just("cell".to_owned()),
            "\\PC{0,6}",
            "[\"'\\\\\n\\]=]{1,4}"
        ]
    }

    proptest! {
        /// Whatever is asked, the text is still TOML, or there is a reason.
        #[test]
        fn any_change_is_written_or_refused(
            which in 0..8_u8, name in texts(), other in texts(), x in numbers(), y in prop::option::of(numbers()), flag in any::<bool>()
        ) {
            let change = match which {
                0 => Edit::MoveUser { user: name, x_m: x, y_m: y.unwrap_or(0.0), speed_m_s: y },
                1 => Edit::AddFlow { flow: BuildFlow {
                    name: flag.then(|| other.clone()), user: Some(name), upload: flag, cc: other.clone(), start_s: y, stop_s: y,
                    workload: Some(other),
                } },
                2 => Edit::StopFlow { flow: name },
                3 => Edit::ReplaceFlow { flow: name, cc: other },
                4 => Edit::SetTarget { flow: name, target_s: x },
                5 => Edit::SetLink { link: name, rate_bit_s: Some(x), delay_s: y },
                6 => Edit::SetFeed { feed: Feed::Modem, content: FeedContent::Random },
                _ => Edit::HandOver { user: name, to: other },
            };
            if let Ok(found) = edit(CELL, &change, Time::from_millis(1_500)) {
                prop_assert!(found.text.parse::<DocumentMut>().is_ok(), "{}", found.text);
                // Whether it is a scenario, its parser says.
                let _ = TraceLibrary::new([]).confined().parse(&found.text, "scenario.toml");
            }
        }
    }
}

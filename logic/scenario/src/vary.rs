//! Changes one key of a scenario's text and keeps the rest as it is, comments included.

use toml_edit::{DocumentMut, InlineTable, Item, Key, TableLike, Value};

use crate::error::{Report, ScenarioError, did_you_mean};
use crate::{cell, middlebox, pep, proxy, quic, rnis, tcp};

/// Keys whose value is always a string, even if it looks like a number.
const STRINGS: [&str; 18] = [
    "lie",
    "name",
    "from",
    "to",
    "cc",
    "ran_cc",
    "trace",
    "transport",
    "kind",
    "opener",
    "link",
    "flow",
    "cell",
    "user",
    "host",
    "preset",
    "radio",
    "file",
];
/// Kinds of entries, each a list of tables.
const KINDS: [&str; 8] = ["link", "cell", "user", "flow", "proxy", "pep", "middlebox", "change"];
/// Where a user is; one takes the place of the others.
const PLACES: [&str; 5] = ["position", "drop", "walk", "waypoints", "trajectory"];
/// How wide a band is, likewise.
const WIDTHS: [&str; 2] = ["bandwidth", "prbs"];
/// What plays a trace; `rate` takes its place and the other way round.
const OF_A_TRACE: [&str; 5] = ["trace", "repeat", "scale", "opportunity", "overhead"];

const TOP: [&str; 5] = ["name", "duration", "warmup", "seed", "sample"];
const LINK: [&str; 15] = [
    "name",
    "from",
    "to",
    "rate",
    "trace",
    "repeat",
    "scale",
    "opportunity",
    "overhead",
    "delay",
    "jitter",
    "queue",
    "loss",
    "reorder",
    "duplex",
];
const FLOW: [&str; 16] = [
    "name",
    "count",
    "stagger",
    "start",
    "stop",
    "transport",
    "cc",
    "packet",
    "estimator",
    "tcp",
    "quic",
    "workload",
    "from",
    "to",
    "path",
    "bearer",
];
const CHANGE: [&str; 10] =
    ["at", "link", "flow", "user", "rate", "delay", "target", "to", "forward", "interruption"];
const BACK: &str = "back";

/// Keys that hold a table.
const TABLES: [&str; 26] = [
    "tcp",
    "queue",
    "loss",
    "jitter",
    "reorder",
    BACK,
    "workload",
    "path_loss",
    "sight",
    "shadowing",
    "fading",
    "noise",
    "noise_up",
    "outer_loop",
    "harq",
    "harq_up",
    "scheduler",
    "ul_power",
    "rlc_timers",
    "aqm",
    "aqm_up",
    "drop",
    "walk",
    "waypoints",
    "recording",
    "quic",
];

/// The text with `key` set to `value`.
///
/// `key` is a path: `duration`, `flow.cc` (every flow), `flow.web.start` (the flow called "web"),
/// `link.bottleneck.queue.limit`, `flow.tcp.initial_window`. A name that has dots is quoted: `link."a.b".rate`.
/// Without a name, a key is set wherever it can stand: those of congestion control and TCP in every flow that is
/// not `transport = "udp"`, `packet` in every flow that is, `back` in every link with `duplex`. A name goes
/// before a key of the same spelling.
///
/// `value` is written as in the scenario, with or without quotes: `20ms`, `5`, `0.01`, `true`,
/// `{ kind = "list", packets = [5] }`. Setting `rate` removes `trace` and what belongs to it, and the other way
/// round. The result is not checked further; [`crate::parse()`] does that.
pub fn vary(text: &str, key: &str, value: &str) -> Result<String, ScenarioError> {
    let mut document: DocumentMut = match text.parse() {
        Ok(document) => document,
        Err(error) => {
            let error: toml_edit::TomlError = error;
            let report = Report::new(text);
            let at = error.span().map_or(0, |span| span.start);
            report.add(at, format!("this is not TOML: {}", error.message().replace('\n', " ")));
            report.finish("")?;
            return Ok(text.to_owned()); // not reached: something was just reported
        }
    };
    let refuse = |problem: String| ScenarioError::without_place(format!("cannot vary {key:?}: {problem}"));
    let path = Key::parse(key).map_err(|error| refuse(error.message().replace('\n', " ")))?;
    let path: Vec<&str> = path.iter().map(Key::get).collect();
    set(&mut document, &path, value).map_err(refuse)?;
    Ok(document.to_string())
}

fn set(document: &mut DocumentMut, path: &[&str], value: &str) -> Result<(), String> {
    let (&first, rest) = path.split_first().ok_or("the key is empty")?;
    if let (true, [key]) = (rnis::TABLES.contains(&first), rest) {
        check_key(rest, &rnis::KEYS, first)?;
        return put(inner_table(document.as_table_mut(), first)?, &[key], value);
    }
    if !KINDS.contains(&first) {
        if !TOP.contains(&first) || !rest.is_empty() {
            let known = TOP.iter().copied().chain(KINDS).chain(rnis::TABLES);
            let near = did_you_mean(first, known);
            let tables = KINDS.into_iter().chain(rnis::TABLES);
            let kinds = tables.map(|kind| format!("{kind}.KEY")).collect::<Vec<_>>().join(", ");
            return Err(format!("expected one of {}, or {kinds}{near}", TOP.join(", ")));
        }
        return put(document.as_table_mut(), path, value);
    }
    let entries = entries_of(document.get_mut(first).ok_or(format!("there is no [[{first}]]"))?);
    let names: Vec<String> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let name = entry.get("name").and_then(Item::as_str);
            name.map_or_else(|| format!("{first}{}", index + 1), str::to_owned)
        })
        .collect();
    let (&second, inner) =
        rest.split_first().ok_or(format!("{first} what? such as {first}.{}", example(first)))?;
    let named = if first == "change" { None } else { names.iter().position(|name| name == second) };
    let keys = keys_of(first);
    if let (Some(index), false) = (named, inner.is_empty()) {
        check_key(inner, &keys, first)?;
        return match entries.into_iter().nth(index) {
            Some(entry) => put(entry, inner, value),
            None => Err(format!("there is no {first} {second:?}")),
        };
    }
    if !keys.contains(&second) {
        let near = did_you_mean(second, keys.iter().copied().chain(names.iter().map(String::as_str)));
        return Err(format!(
            "{second:?} is neither a key of [[{first}]] nor a name in it with a key after it; names are {}, keys {}{near}",
            names.iter().take(10).cloned().collect::<Vec<_>>().join(", "),
            keys.join(", ")
        ));
    }
    let mut is_set = false;
    for entry in entries.into_iter().filter(|entry| can_stand(first, second, *entry)) {
        put(entry, rest, value)?;
        is_set = true;
    }
    if is_set { Ok(()) } else { Err(format!("no [[{first}]] has a place for {second:?}")) }
}

fn example(kind: &str) -> &'static str {
    match kind {
        "link" => "rate",
        "cell" => "bandwidth",
        "user" => "position",
        "flow" => "cc",
        "proxy" => "ran_cc",
        "pep" | "middlebox" => "host",
        _ => "at",
    }
}

fn keys_of(kind: &str) -> Vec<&'static str> {
    match kind {
        "link" => LINK.into_iter().chain([BACK]).collect(),
        "cell" => cell::CELL_KEYS.into_iter().chain(cell::BEARER_KEYS).collect(),
        "user" => cell::USER_KEYS.into_iter().chain(cell::BEARER_KEYS).collect(),
        "flow" => {
            let of_quic = quic::KEYS.into_iter().filter(|key| !tcp::KEYS.contains(key));
            FLOW.into_iter().chain([BACK]).chain(tcp::KEYS).chain(of_quic).collect()
        }
        "proxy" => proxy::KEYS.to_vec(),
        "pep" => pep::KEYS.to_vec(),
        "middlebox" => middlebox::KEYS.to_vec(),
        _ => CHANGE.to_vec(),
    }
}

fn check_key(path: &[&str], keys: &[&str], kind: &str) -> Result<(), String> {
    match path.first() {
        Some(key) if !keys.contains(key) => {
            let near = did_you_mean(key, keys.iter().copied());
            Err(format!("{key:?} is not a key of [[{kind}]]; there are {}{near}", keys.join(", ")))
        }
        _ => Ok(()),
    }
}

/// Whether an entry that was not named gets the key.
fn can_stand(kind: &str, key: &str, entry: &dyn TableLike) -> bool {
    let transport = entry.get("transport").and_then(Item::as_str);
    let (is_udp, is_quic) = (transport == Some("udp"), transport == Some("quic"));
    match (kind, key) {
        ("flow", "packet" | "estimator") => is_udp,
        ("flow", "cc" | BACK) => !is_udp,
        ("flow", "tcp") => !is_udp && !is_quic,
        ("flow", "quic") => is_quic,
        ("flow", key) if is_quic && tcp::KEYS.contains(&key) => quic::KEYS.contains(&key),
        ("flow", key) if tcp::KEYS.contains(&key) => !is_udp,
        ("flow", key) if quic::KEYS.contains(&key) => is_quic,
        ("link", BACK) => {
            entry.contains_key(BACK) || entry.get("duplex").and_then(Item::as_bool) == Some(true)
        }
        // Links with the same name, flows with the same, changes of another kind: nothing that is meant.
        ("change", "rate" | "delay" | "target" | "to" | "forward" | "interruption") => {
            entry.contains_key(key)
        }

        _ => true,
    }
}

/// The tables of `[[key]]`, however they are written.
fn entries_of(item: &mut Item) -> Vec<&mut dyn TableLike> {
    match item {
        Item::ArrayOfTables(tables) => tables.iter_mut().map(|table| table as &mut dyn TableLike).collect(),
        Item::Value(Value::Array(list)) => list
            .iter_mut()
            .filter_map(|value| value.as_inline_table_mut().map(|table| table as &mut dyn TableLike))
            .collect(),
        _ => Vec::new(),
    }
}

/// Sets a value in a table, making the tables on the way.
fn put(table: &mut dyn TableLike, path: &[&str], value: &str) -> Result<(), String> {
    let (&key, rest) = path.split_first().ok_or("the key is empty")?;
    // A setting of TCP may be written flat or in `tcp`; it is changed where it is. Likewise for QUIC.
    for (name, keys) in [("tcp", tcp::KEYS.as_slice()), ("quic", quic::KEYS.as_slice())] {
        if let [inner] = rest
            && key == name
            && table.contains_key(inner)
            && keys.contains(inner)
        {
            return put(table, rest, value);
        }
        let inner = table.get(name).and_then(Item::as_table_like);
        if rest.is_empty() && keys.contains(&key) && inner.is_some_and(|inner| inner.contains_key(key)) {
            return put(inner_table(table, name)?, path, value);
        }
    }
    if !rest.is_empty() {
        if !TABLES.contains(&key) {
            return Err(format!("{key:?} has no keys in it; {} have", TABLES.join(", ")));
        }
        return put(inner_table(table, key)?, rest, value);
    }
    if key == "rate" && table.contains_key("trace") {
        OF_A_TRACE.iter().for_each(|other| drop(table.remove(other)));
    } else if key == "trace" && table.remove("rate").is_some() {
        // What a tunnel takes of a rate, and what a trace takes of an opportunity, are not the same.
        table.remove("overhead");
    }
    for instead in [PLACES.as_slice(), &WIDTHS].into_iter().filter(|keys| keys.contains(&key)) {
        instead.iter().filter(|other| **other != key).for_each(|other| drop(table.remove(other)));
    }
    let mut value = toml_value(key, value);
    match table.get_mut(key) {
        Some(old) => {
            // What stands around the old value, such as a comment after it, stays.
            if let Some(old) = old.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *old = Item::Value(value);
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
    Ok(())
}

/// The table at a key. One that is not there is made; a word such as `queue = "codel"` becomes its `kind`.
fn inner_table<'t>(table: &'t mut dyn TableLike, key: &str) -> Result<&'t mut dyn TableLike, String> {
    let item = match table.get(key) {
        None => Some(InlineTable::new()),
        Some(item) => item.as_str().map(|kind| InlineTable::from_iter([("kind", kind)])),
    };
    if let Some(made) = item {
        let mut made = Value::InlineTable(made);
        if let Some(old) = table.get(key).and_then(Item::as_value) {
            *made.decor_mut() = old.decor().clone();
        }
        match table.get_mut(key) {
            Some(old) => *old = Item::Value(made),
            None => drop(table.insert(key, Item::Value(made))),
        }
    }
    let inner = table.get_mut(key).and_then(Item::as_table_like_mut);
    inner.ok_or_else(|| format!("{key:?} is not a table there"))
}

/// The value as TOML: what cannot be anything else is a string.
fn toml_value(key: &str, text: &str) -> Value {
    let text = text.trim();
    let string = Value::from(text);
    match text.parse::<Value>() {
        Ok(Value::Datetime(_)) | Err(_) => string,
        // The set of timers of TS 36.331.
        Ok(Value::Integer(_)) if key == "rlc_timers" => string,
        Ok(value @ Value::String(_)) => value,
        Ok(_) if STRINGS.contains(&key) => string,
        Ok(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Drive
duration = "30s" # long enough

[[link]]
name = "down"
from = "a"
to = "b"
trace = "x" # the best one
repeat = true
queue = "codel"
duplex = true

[[link]]
name = "up.1"
from = "b"
to = "a"
rate = "1Mbit/s"
queue = { kind = "droptail", limit = "9KB" } # small

[[flow]]
cc = "cubic"
mtu = "1400B"

[[flow]]
name = "web"
cc = "cubic"

[flow.tcp]
mtu = "1300B"

[[flow]]
name = "noise"
transport = "udp"
"#;

    /// The lines of the varied text that the text does not have, and those that it has and they do not.
    fn difference(key: &str, value: &str) -> (Vec<String>, Vec<String>) {
        let varied = vary(TEXT, key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        let mut old: Vec<&str> = TEXT.lines().collect();
        let mut new = Vec::new();
        for line in varied.lines() {
            match old.iter().position(|old| *old == line) {
                Some(at) => drop(old.remove(at)),
                None => new.push(line.to_owned()),
            }
        }
        (new, old.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn settings_of_quic_are_changed_where_they_are() {
        let text = "[[flow]]\ntransport = \"quic\"\nquic = { mtu = \"1400B\" }\n[[flow]]\ncc = \"cubic\"\n";
        for (key, value, expected) in [
            ("flow.quic.max_data", "1MB", &["quic = { mtu = \"1400B\" , max_data = \"1MB\" }"][..]),
            ("flow.mtu", "1300B", &["quic = { mtu = \"1300B\" }", "mtu = \"1300B\""]),
            ("flow.max_data", "1MB", &["max_data = \"1MB\""]),
            ("flow.min_rto", "1s", &["min_rto = \"1s\""]),
        ] {
            let varied = vary(text, key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
            let new: Vec<&str> = varied.lines().filter(|line| !text.contains(line)).collect();
            assert_eq!(new, expected, "{key}\n{varied}");
        }
        let varied = vary(text, "flow.min_rto", "1s").unwrap_or_default();
        assert!(varied.ends_with("cc = \"cubic\"\nmin_rto = \"1s\"\n"), "TCP alone has it: {varied}");
    }

    #[test]
    fn one_key_changes_and_the_rest_stays() {
        for (key, value, new, gone) in [
            (
                "duration",
                "1s",
                &["duration = \"1s\" # long enough"][..],
                &["duration = \"30s\" # long enough"][..],
            ),
            ("seed", "5", &["seed = 5"], &[]),
            ("name", "5", &["name = \"5\""], &[]),
            ("flow.cc", "c2tcp:target=50ms", &["cc = \"c2tcp:target=50ms\""; 2], &["cc = \"cubic\""; 2]),
            ("flow.web.cc", "bbr1", &["cc = \"bbr1\""], &["cc = \"cubic\""]),
            ("flow.web.cc", "\"bbr1\"", &["cc = \"bbr1\""], &["cc = \"cubic\""]),
            ("flow.flow1.start", "5s", &["start = \"5s\""], &[]),
            ("flow.packet", "200B", &["packet = \"200B\""], &[]),
            ("flow.tcp.mtu", "1200B", &["mtu = \"1200B\""; 2], &["mtu = \"1400B\"", "mtu = \"1300B\""]),
            ("flow.mtu", "1200B", &["mtu = \"1200B\""; 2], &["mtu = \"1400B\"", "mtu = \"1300B\""]),
            ("flow.tcp.initial_window", "4", &["tcp = { initial_window = 4 }", "initial_window = 4"], &[]),
            (
                "link.down.rate",
                "5Mbit/s",
                &["rate = \"5Mbit/s\""],
                &["trace = \"x\" # the best one", "repeat = true"],
            ),
            ("link.\"up.1\".trace", "y", &["trace = \"y\""], &["rate = \"1Mbit/s\""]),
            ("link.\"up.1\".loss", "0.5", &["loss = 0.5"], &[]),
            (
                "link.down.queue.target",
                "9ms",
                &["queue = { kind = \"codel\", target = \"9ms\" }"],
                &["queue = \"codel\""],
            ),
            (
                "link.\"up.1\".queue.kind",
                "pie",
                &["queue = { kind = \"pie\", limit = \"9KB\" } # small"],
                &["queue = { kind = \"droptail\", limit = \"9KB\" } # small"],
            ),
            ("link.back.rate", "2Mbit/s", &["back = { rate = \"2Mbit/s\" }"], &[]),
            (
                "flow.web.workload",
                "{ kind = \"fixed\", size = \"1MB\" }",
                &["workload = { kind = \"fixed\", size = \"1MB\" }"],
                &[],
            ),
            ("flow.web.path", "[\"down\"]", &["path = [\"down\"]"], &[]),
        ] {
            let expected =
                (new.iter().map(|l| l.to_string()).collect(), gone.iter().map(|l| l.to_string()).collect());
            assert_eq!(difference(key, value), expected, "{key} = {value}");
        }
    }

    #[test]
    fn what_cannot_be_varied_says_what_can() {
        for (key, message) in [
            ("", "cannot vary \"\": "),
            (
                "duratoin",
                "cannot vary \"duratoin\": expected one of name, duration, warmup, seed, sample, or link.KEY, \
                          cell.KEY, user.KEY, flow.KEY, proxy.KEY, pep.KEY, \
                          middlebox.KEY, change.KEY, \
                          rnis.KEY, modem.KEY; did you mean \"duration\"?",
            ),
            ("flow", "cannot vary \"flow\": flow what? such as flow.cc"),
            ("change.at", "cannot vary \"change.at\": there is no [[change]]"),
            ("flow.cx", "cannot vary \"flow.cx\": \"cx\" is neither a key of [[flow]] nor a name"),
            ("flow.wbe.cc", "cannot vary \"flow.wbe.cc\": \"wbe\" is neither a key of [[flow]] nor a name"),
            ("flow.web.cx", "cannot vary \"flow.web.cx\": \"cx\" is not a key of [[flow]]"),
            ("link.delay.x", "cannot vary \"link.delay.x\": \"delay\" has no keys in it; tcp, queue"),
            (
                "link.\"up.1\".back.delay.x",
                "cannot vary \"link.\\\"up.1\\\".back.delay.x\": \"delay\" has no keys",
            ),
        ] {
            let error = vary(TEXT, key, "1").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = vary("a = \n", "duration", "1s").unwrap_err().to_string();
        assert!(error.starts_with("line 1, column 5: this is not TOML"), "{error}");
    }
}

//! Changes one key in a scenario's text and keeps the rest unchanged, comments included.

use toml_edit::{DocumentMut, InlineTable, Item, Key, TableLike, Value};

use crate::error::{Diagnostics, ScenarioError, did_you_mean};
use crate::key::Group;
use crate::tables::{self, TABLES, Table};
use crate::{quic, tcp};

/// Keys of nested tables whose value is always a string, even if it looks like a number.
const INNER_STRINGS: [&str; 2] = ["kind", "file"];
/// Alternative keys for the place of a user; setting one removes the others.
const PLACES: [&str; 5] = ["position", "drop", "walk", "waypoints", "trajectory"];
/// Alternative keys for the width of a band, likewise.
const WIDTHS: [&str; 2] = ["bandwidth", "prbs"];
/// Keys of a trace, which setting `rate` removes, and vice versa.
const OF_A_TRACE: [&str; 5] = ["trace", "repeat", "scale", "opportunity", "overhead"];
const BACK: &str = "back";

/// The text with `key` set to `value`.
///
/// `key` is a path: `duration`, `flow.cc` (every flow), `flow.web.start` (the flow called "web"),
/// `link.bottleneck.queue.limit`, `flow.tcp.initial_window`. A name that contains dots is quoted: `link."a.b".rate`.
/// Without a name, a key is set in every table that supports it: keys of congestion control and TCP in every flow that is
/// not `transport = "udp"`, `packet` in every flow that is, `back` in every link with `duplex`. A name takes
/// precedence over a key with the same spelling.
///
/// `value` is written as in the scenario, with or without quotes: `20ms`, `5`, `0.01`, `true`,
/// `{ kind = "list", packets = [5] }`. Setting `rate` removes `trace` and its keys, and vice
/// versa. The result is not checked further; [`crate::parse()`] does that.
pub fn vary(text: &str, key: &str, value: &str) -> Result<String, ScenarioError> {
    let mut document: DocumentMut = match text.parse() {
        Ok(document) => document,
        Err(error) => {
            let error: toml_edit::TomlError = error;
            let report = Diagnostics::new(text);
            let at = error.span().map_or(0, |span| span.start);
            report.add(at, format!("this is not TOML: {}", error.message().replace('\n', " ")));
            report.finish("")?;
            return Ok(text.to_owned()); // unreachable, since a problem was just reported
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
    let Some(table) = TABLES.iter().find(|table| table.name == first && (table.is_list || rest.len() == 1))
    else {
        if !names(tables::TOP).contains(&first) || !rest.is_empty() {
            return Err(no_such_key(first));
        }
        return put(document.as_table_mut(), tables::TOP, path, value);
    };
    if !table.is_list {
        check_key(rest, table)?;
        return put(inner_table(document.as_table_mut(), first)?, table.keys, rest, value);
    }
    set_in_entries(document, table, rest, value)
}

/// Sets a key in the tables of `[[table]]`: in the one that `path` names, or in all that support it.
fn set_in_entries(
    document: &mut DocumentMut,
    table: &Table,
    path: &[&str],
    value: &str,
) -> Result<(), String> {
    let kind = table.name;
    let entries = entries_of(document.get_mut(kind).ok_or(format!("there is no [[{kind}]]"))?);
    let names: Vec<String> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let name = entry.get("name").and_then(Item::as_str);
            name.map_or_else(|| format!("{kind}{}", index + 1), str::to_owned)
        })
        .collect();
    let (&second, inner) = path
        .split_first()
        .ok_or(format!("expected a key of [[{kind}]], such as {kind}.{}", table.example))?;
    let has_names = self::names(table.keys).contains(&"name");
    let named = if has_names { names.iter().position(|name| name == second) } else { None };
    if let (Some(index), false) = (named, inner.is_empty()) {
        check_key(inner, table)?;
        return match entries.into_iter().nth(index) {
            Some(entry) => put(entry, table.keys, inner, value),
            None => Err(format!("there is no {kind} {second:?}")),
        };
    }
    let keys = self::names(table.keys);
    if !keys.contains(&second) {
        let near = did_you_mean(second, keys.iter().copied().chain(names.iter().map(String::as_str)));
        return Err(format!(
            "{second:?} is neither a key of [[{kind}]] nor a name followed by a key; names are {}, keys {}{near}",
            names.iter().take(10).cloned().collect::<Vec<_>>().join(", "),
            keys.join(", ")
        ));
    }
    let mut is_set = false;
    for entry in entries.into_iter().filter(|entry| can_stand(kind, second, *entry)) {
        put(entry, table.keys, path, value)?;
        is_set = true;
    }
    if is_set { Ok(()) } else { Err(format!("no [[{kind}]] accepts {second:?}")) }
}

/// Message about an unknown key, with the valid keys at the top.
fn no_such_key(asked: &str) -> String {
    let top = names(tables::TOP);
    let near = did_you_mean(asked, top.iter().copied().chain(TABLES.iter().map(|table| table.name)));
    let keys: Vec<String> = TABLES.iter().map(|table| format!("{}.KEY", table.name)).collect();
    format!("expected one of {}, or {}{near}", top.join(", "), keys.join(", "))
}

/// The names of keys, without duplicates.
fn names(keys: &[Group]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for key in keys.iter().flat_map(|group| group.iter()) {
        if !names.contains(&key.name()) {
            names.push(key.name());
        }
    }
    names
}

fn has(group: Group, name: &str) -> bool {
    group.iter().any(|key| key.name() == name)
}

fn check_key(path: &[&str], table: &Table) -> Result<(), String> {
    let keys = names(table.keys);
    match path.first() {
        Some(key) if !keys.contains(key) => {
            let near = did_you_mean(key, keys.iter().copied());
            Err(format!(
                "{key:?} is not a key of [[{}]]; expected one of {}{near}",
                table.name,
                keys.join(", ")
            ))
        }
        _ => Ok(()),
    }
}

/// Returns whether a table that was not named gets the key.
fn can_stand(kind: &str, key: &str, entry: &dyn TableLike) -> bool {
    let transport = entry.get("transport").and_then(Item::as_str);
    let (is_udp, is_quic) = (transport == Some("udp"), transport == Some("quic"));
    match (kind, key) {
        ("flow", "packet" | "estimator") => is_udp,
        ("flow", "cc" | BACK) => !is_udp,
        ("flow", "tcp") => !is_udp && !is_quic,
        ("flow", "quic") => is_quic,
        ("flow", key) if is_quic && has(tcp::KEYS, key) => has(quic::KEYS, key),
        ("flow", key) if has(tcp::KEYS, key) => !is_udp,
        ("flow", key) if has(quic::KEYS, key) => is_quic,
        ("link", BACK) => {
            entry.contains_key(BACK) || entry.get("duplex").and_then(Item::as_bool) == Some(true)
        }
        // Changes of other kinds do not get the key.
        ("change", "rate" | "delay" | "target" | "to" | "forward" | "interruption") => {
            entry.contains_key(key)
        }

        _ => true,
    }
}

/// The tables of `[[key]]`, in either notation.
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

/// Sets a value in a table with these keys, creating tables on the way.
fn put(table: &mut dyn TableLike, keys: &[Group], path: &[&str], value: &str) -> Result<(), String> {
    let (&key, rest) = path.split_first().ok_or("the key is empty")?;
    // A setting of TCP may be written flat or in `tcp`; it is changed in its place. Likewise for QUIC.
    for (name, settings) in [("tcp", tcp::KEYS), ("quic", quic::KEYS)] {
        if let [inner] = rest
            && key == name
            && table.contains_key(inner)
            && has(settings, inner)
        {
            return put(table, keys, rest, value);
        }
        let inner = table.get(name).and_then(Item::as_table_like);
        if rest.is_empty() && has(settings, key) && inner.is_some_and(|inner| inner.contains_key(key)) {
            return put(inner_table(table, name)?, keys, path, value);
        }
    }
    if !rest.is_empty() {
        let mut declared = keys.iter().flat_map(|group| group.iter());
        if !declared.any(|declared| declared.name() == key && declared.is_table()) {
            let tables = keys.iter().flat_map(|group| group.iter()).filter(|key| key.is_table());
            let tables: Vec<&str> = tables.map(|key| key.name()).collect();
            return Err(match tables.as_slice() {
                [] => format!("{key:?} is not a table"),
                tables => format!("{key:?} is not a table; tables are {}", tables.join(", ")),
            });
        }
        return put(inner_table(table, key)?, keys, rest, value);
    }
    if key == "rate" && table.contains_key("trace") {
        OF_A_TRACE.iter().for_each(|other| drop(table.remove(other)));
    } else if key == "trace" && table.remove("rate").is_some() {
        // The overhead of a tunnel on a rate differs from the overhead on a trace's opportunities.
        table.remove("overhead");
    }
    for instead in [PLACES.as_slice(), &WIDTHS].into_iter().filter(|keys| keys.contains(&key)) {
        instead.iter().filter(|other| **other != key).for_each(|other| drop(table.remove(other)));
    }
    let mut value = toml_value(key, keys, value);
    match table.get_mut(key) {
        Some(old) => {
            // Text around the old value, such as a trailing comment, is kept.
            if let Some(old) = old.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *old = Item::Value(value);
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
    Ok(())
}

/// The table at a key, created if missing; a word such as `queue = "codel"` becomes its `kind`.
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

/// The value as TOML; a text that is not a TOML value becomes a string.
fn toml_value(key: &str, keys: &[Group], text: &str) -> Value {
    let mut declared = keys.iter().flat_map(|group| group.iter());
    let is_text =
        INNER_STRINGS.contains(&key) || declared.any(|declared| declared.name() == key && declared.is_text());
    let text = text.trim();
    let string = Value::from(text);
    match text.parse::<Value>() {
        Ok(Value::Datetime(_)) | Err(_) => string,
        // "36331" names the set of timers of TS 36.331.
        Ok(Value::Integer(_)) if key == "rlc_timers" => string,
        Ok(value @ Value::String(_)) => value,
        Ok(_) if is_text => string,
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

    /// The lines that are only in the varied text, and those that are only in the original.
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
    fn unknown_settings_are_answered_with_those_that_exist() {
        for (key, message) in [
            ("", "cannot vary \"\": "),
            (
                "duratoin",
                "cannot vary \"duratoin\": expected one of name, duration, warmup, seed, sample, or link.KEY, \
                          cell.KEY, user.KEY, flow.KEY, proxy.KEY, pep.KEY, \
                          middlebox.KEY, rewriter.KEY, change.KEY, \
                          rnis.KEY, modem.KEY; did you mean \"duration\"?",
            ),
            ("flow", "cannot vary \"flow\": expected a key of [[flow]], such as flow.cc"),
            ("change.at", "cannot vary \"change.at\": there is no [[change]]"),
            ("flow.cx", "cannot vary \"flow.cx\": \"cx\" is neither a key of [[flow]] nor a name"),
            ("flow.wbe.cc", "cannot vary \"flow.wbe.cc\": \"wbe\" is neither a key of [[flow]] nor a name"),
            ("flow.web.cx", "cannot vary \"flow.web.cx\": \"cx\" is not a key of [[flow]]"),
            (
                "link.delay.x",
                "cannot vary \"link.delay.x\": \"delay\" is not a table; tables are jitter, queue",
            ),
            (
                "link.\"up.1\".back.delay.x",
                "cannot vary \"link.\\\"up.1\\\".back.delay.x\": \"delay\" is not a table",
            ),
        ] {
            let error = vary(TEXT, key, "1").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = vary("a = \n", "duration", "1s").unwrap_err().to_string();
        assert!(error.starts_with("line 1, column 5: this is not TOML"), "{error}");
    }
}

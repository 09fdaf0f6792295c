//! Logs of QUIC connections that qvis reads: qlog 0.3, as JSON text sequences (RFC 7464).
//!
//! noq writes a later draft (main schema 13), whose header has no `qlog_version`, which qvis asks for, and in which all events of QUIC are of
//! one category. Each record is rewritten on its way to the file: draft-ietf-quic-qlog-main-schema-02 and draft-ietf-quic-qlog-quic-events-02
//! have its categories and names.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use noq::{ConnectionId, QlogConfig, QlogFactory, Side};
use serde_json::{Map, Value, json};

/// Ends a record.
const END: u8 = b'\n';
/// Begins one.
const BEGIN: u8 = 0x1e;

/// Makes a file for each connection in a folder: `ranpace-MILLISECONDS-CONNECTION-server.sqlog`.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
}

impl Logs {
    /// Logs in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl QlogFactory for Logs {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = self.folder.join(format!("ranpace-{}-{initial_dst_cid}-server.sqlog", since.as_millis()));
        let opened = File::create(&path);
        let opened = opened.inspect_err(|error| {
            tracing::warn!(file = %path.display(), %error, "a connection has no log");
        });
        let file = BufWriter::new(opened.ok()?);
        let began_ms = since.as_secs_f64() * 1e3;
        Some(QlogConfig::new(Box::new(Rewriter { file, record: Vec::new(), began_ms })))
    }
}

/// Rewrites records.
#[derive(Debug)]
struct Rewriter<W> {
    file: W,
    /// What has come of the present record.
    record: Vec<u8>,
    /// When the connection began, since 1970.
    began_ms: f64,
}

impl<W: Write> Write for Rewriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == END) {
            self.record.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let record = std::mem::take(&mut self.record);
            let text = record.strip_prefix(&[BEGIN]).unwrap_or(&record);
            let record = rewritten(serde_json::from_slice(text)?, self.began_ms);
            self.file.write_all(&[BEGIN])?;
            serde_json::to_writer(&mut self.file, &record)?;
            self.file.write_all(&[END])?;
        }
        self.record.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A record of the later draft as one of the earlier.
fn rewritten(record: Value, began_ms: f64) -> Value {
    let Value::Object(mut record) = record else { return record };
    if record.contains_key("file_schema") {
        return header(&mut record, began_ms);
    }
    if let Some(Value::String(name)) = record.get_mut("name") {
        *name = event(name);
    }
    if let Some(frames) = record.get_mut("data").and_then(|data| data.get_mut("frames")) {
        frames.as_array_mut().into_iter().flatten().for_each(frame);
    }
    Value::Object(record)
}

fn header(record: &mut Map<String, Value>, began_ms: f64) -> Value {
    let mut trace = record.remove("trace").unwrap_or_else(|| json!({}));
    if let Some(trace) = trace.as_object_mut() {
        trace.remove("event_schemas");
        let group = trace.get("common_fields").and_then(|fields| fields.get("group_id")).cloned();
        let mut fields = json!({
            "protocol_type": ["QUIC", "HTTP3"],
            "reference_time": began_ms,
            "time_format": "relative",
        });
        if let Some(group) = group {
            fields["ODCID"] = group;
        }
        trace.insert("common_fields".to_owned(), fields);
    }
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": "ranpace serve",
        "trace": trace,
    })
}

/// The name of an event with its category of then.
fn event(name: &str) -> String {
    let Some((schema, name)) = name.split_once(':') else { return name.to_owned() };
    let category = match (schema, name) {
        ("http3", _) => "http",
        ("quic", "recovery_parameters_set") => return "recovery:parameters_set".to_owned(),
        ("quic", "recovery_metrics_updated") => return "recovery:metrics_updated".to_owned(),
        ("quic", "timer_updated") => return "recovery:loss_timer_updated".to_owned(),
        (
            "quic",
            "congestion_state_updated" | "packet_lost" | "marked_for_retransmit" | "ecn_state_updated",
        ) => "recovery",
        ("quic", "key_updated" | "key_retired") => "security",
        (
            "quic",
            "server_listening"
            | "connection_started"
            | "connection_closed"
            | "connection_id_updated"
            | "spin_bit_updated"
            | "connection_state_updated"
            | "tuple_assigned"
            | "mtu_updated"
            | "migration_state_updated",
        ) => "connectivity",
        ("quic", _) => "transport",
        (other, _) => other,
    };
    format!("{category}:{name}")
}

/// The length of a frame's content stood in the frame itself.
fn frame(frame: &mut Value) {
    let length = ["payload_length", "length"].iter().find_map(|key| frame.get("raw")?.get(key).cloned());
    if let (Some(length), Some(frame)) = (length, frame.as_object_mut()) {
        frame.entry("length").or_insert(length);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    #[test]
    fn records_become_those_of_qlog_0_3_also_if_they_are_written_in_parts() {
        let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"JSON-SEQ","trace":{"vantage_point":{"type":"server"},"common_fields":{"group_id":"ab01","time_format":"relative"},"event_schemas":[]}}"#;
        let sent = r#"{"time":1.5,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7},"frames":[{"frame_type":"stream","stream_id":0,"offset":5,"raw":{"length":900}},{"frame_type":"ping"}]}}"#;
        let metrics =
            r#"{"time":2,"name":"quic:recovery_metrics_updated","data":{"congestion_window":12000}}"#;
        let text: String = [header, sent, metrics].iter().map(|record| format!("\u{1e}{record}\n")).collect();
        let mut rewriter = Rewriter { file: Vec::new(), record: Vec::new(), began_ms: 1e12 };
        for part in text.as_bytes().chunks(37) {
            rewriter.write_all(part).unwrap();
        }
        let text = String::from_utf8(rewriter.file).unwrap();
        let records: Vec<Value> =
            text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
        assert_eq!(records.len(), 3);
        assert_eq!(
            (&records[0]["qlog_version"], &records[0]["qlog_format"]),
            (&json!("0.3"), &json!("JSON-SEQ"))
        );
        assert_eq!(records[0]["trace"]["common_fields"]["ODCID"], "ab01");
        assert_eq!(records[0]["trace"]["common_fields"]["reference_time"], 1e12);
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], "server");
        assert_eq!(records[1]["name"], "transport:packet_sent");
        assert_eq!(records[1]["data"]["frames"][0]["length"], 900);
        assert!(records[1]["data"]["frames"][1].get("length").is_none());
        assert_eq!(records[2]["name"], "recovery:metrics_updated");
    }
}

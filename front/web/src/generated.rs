//! Files that are generated from the types of the interface, and the tests that compare them. `RANPACE_WRITE_INTERFACE=1` writes them.

use std::path::Path;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::protocol;

/// Compares a committed file, or writes it.
fn compare(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("RANPACE_WRITE_INTERFACE").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not what the types say: RANPACE_WRITE_INTERFACE=1 cargo test -p ranpace-web generated",
        path.display()
    );
}

#[test]
fn the_pages_types_are_the_servers() {
    let mut text =
        "// Generated from front/web/src/protocol.rs by `RANPACE_WRITE_INTERFACE=1 cargo test -p ranpace-web generated`.\n".to_owned();
    for (docs, declaration) in protocol::declarations() {
        text.push('\n');
        text += docs.unwrap_or_default().trim_end();
        text += &format!("\nexport {declaration}\n");
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    compare("page/src/types.ts", &(lines.join("\n") + "\n"));
}

/// An operation of the interface.
struct Operation {
    method: &'static str,
    path: &'static str,
    about: &'static str,
    /// Parameters of the address: name, whether it is required, and what it is.
    query: &'static [(&'static str, bool, &'static str)],
    /// The type of the body.
    body: Option<&'static str>,
    /// What comes back: a type, a list of one (`[Type]`), or a content type.
    answer: &'static str,
}

const fn get(path: &'static str, about: &'static str, answer: &'static str) -> Operation {
    Operation { method: "get", path, about, query: &[], body: None, answer }
}

const fn post(
    path: &'static str,
    about: &'static str,
    body: &'static str,
    answer: &'static str,
) -> Operation {
    Operation { method: "post", path, about, query: &[], body: Some(body), answer }
}

const PATH: (&str, bool, &str) = ("path", true, "path below the folder of results");
const FORMAT: (&str, bool, &str) = ("format", false, "columns (default), csv or parquet");

/// All of it, in the order of the router.
const OPERATIONS: &[Operation] = &[
    get("/server", "The server and its limits", "ServerInfo"),
    get("/openapi.json", "This description", "application/json"),
    get("/controls", "Congestion controls and their options", "Controls"),
    Operation {
        query: &[("cc", true, "the control with its options: cubic+c2tcp:target=50ms")],
        ..get("/controls/check", "Whether a control can be used as it is written", "CheckedControl")
    },
    get("/sources", "What a scenario can be made of", "Sources"),
    Operation {
        method: "post",
        path: "/recordings",
        about: "Keep a recording of mahimahi's as text",
        query: &[("name", true, "its name: letters, digits, '.', '_', '-'")],
        body: Some("application/octet-stream"),
        answer: "Named",
    },
    post("/scenarios/build", "Write a scenario from its parts", "Build", "Checked"),
    post("/scenarios/check", "Check a scenario", "ScenarioText", "Checked"),
    get("/sessions", "All runs that are played", "[Session]"),
    post("/sessions", "Begin a run", "NewSession", "Session"),
    get("/sessions/{id}", "A run", "Session"),
    Operation {
        method: "delete",
        path: "/sessions/{id}",
        about: "End a run",
        query: &[],
        body: None,
        answer: "",
    },
    Operation {
        query: &[("download", false, "as a file")],
        ..get("/sessions/{id}/scenario", "The scenario of a run with all changes", "text/plain")
    },
    post("/sessions/{id}/control", "Play, pause, step, jump, another speed", "Action", "PlayState"),
    post("/sessions/{id}/edits", "Change the scenario from now on", "Edit", "Edited"),
    post("/sessions/{id}/save", "Play it to its end and keep the results", "Empty", "Saved"),
    Operation {
        query: &[("of", true, "flow, link or user"), ("name", true, "its name"), FORMAT],
        ..get("/sessions/{id}/table", "The rows so far of a flow, link or user", "application/octet-stream")
    },
    get(
        "/sessions/{id}/stream",
        "A WebSocket: messages (`Message`) as text, and binary frames of columns",
        "101",
    ),
    Operation {
        query: &[("path", false, PATH.2)],
        ..get("/results", "What is in a folder of results", "Folder")
    },
    Operation { query: &[PATH], ..get("/results/run", "A complete run", "StoredRun") },
    Operation {
        query: &[PATH, ("table", true, "its name: flow-0"), FORMAT],
        ..get("/results/series", "A table of a run", "application/octet-stream")
    },
    Operation { query: &[PATH], ..get("/results/file", "A file as it is", "application/octet-stream") },
    get("/live", "Commands that run here and can be watched", "[LiveSource]"),
    post("/live", "Watch a running command", "Attach", "Session"),
    get("/reproductions", "Published experiments: published beside measured", "[Reproduction]"),
];

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn content(of: &str) -> Value {
    if of.contains('/') {
        return json!({ of: { "schema": if of == "application/json" { json!({}) } else { json!({ "type": "string" }) } } });
    }
    let schema = match of.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(item) => json!({ "type": "array", "items": reference(item) }),
        None => reference(of),
    };
    json!({ "application/json": { "schema": schema } })
}

fn operation(of: &Operation) -> Value {
    let in_path = of.path.contains("{id}").then(|| {
        json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" }, "description": "identifier of the run" })
    });
    let in_query = of.query.iter().map(|(name, required, about)| {
        json!({ "name": name, "in": "query", "required": required, "schema": { "type": "string" }, "description": about })
    });
    let parameters: Vec<Value> = in_path.into_iter().chain(in_query).collect();
    let (status, answer) = match of.answer {
        "" => ("204", json!({ "description": "done" })),
        "101" => ("101", json!({ "description": "the stream" })),
        // The content type of a table follows from its format.
        "application/octet-stream" => ("200", json!({ "description": "the bytes" })),
        answer => ("200", json!({ "description": "done", "content": content(answer) })),
    };
    let problem = json!({ "description": "refused: why, and what to do", "content": content("Problem") });
    let mut described = json!({
        "summary": of.about,
        "responses": { status: answer, "4XX": problem },
    });
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = of.body {
        described["requestBody"] = json!({ "required": true, "content": content(body) });
    }
    described
}

#[test]
fn the_description_is_that_of_the_types() {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    protocol::schemas(&mut generator);
    let mut schemas: Map<String, Value> = generator.take_definitions(true);
    schemas.insert("Empty".to_owned(), json!({ "type": "object", "maxProperties": 0 }));
    let mut paths: Map<String, Value> = Map::new();
    for of in OPERATIONS {
        let path = paths.entry(format!("/api{}", of.path)).or_insert_with(|| json!({}));
        path[of.method] = operation(of);
    }
    let mut description = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ranpace lab",
            "version": "1",
            "description": "Runs that are played in the browser, and folders of results. docs/lab.md describes it.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    // Another package of the workspace may have serde_json keep the order of insertion.
    description.sort_all_objects();
    compare("openapi.json", &(serde_json::to_string_pretty(&description).unwrap() + "\n"));
}

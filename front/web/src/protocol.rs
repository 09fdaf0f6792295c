//! What the page and the server say to each other: requests, answers and messages as JSON. Columns of numbers are binary: [`crate::frame`].
//!
//! The page's TypeScript types (`front/web/page/src/types.ts`) and the schemas of the interface's description
//! (`front/web/openapi.json`) are generated from this file; tests compare them. Names end in their unit. An answer that is no
//! success is a [`Problem`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Declares types of the interface: all are written as JSON, and described for TypeScript and OpenAPI.
macro_rules! interface {
    ($($(#[$meta:meta])* pub $kind:ident $name:ident $body:tt)*) => {
        $(
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
            $(#[$meta])*
            pub $kind $name $body
        )*

        /// The declarations of all types, in the order of this file.
        #[cfg(test)]
        pub(crate) fn declarations() -> Vec<(Option<String>, String)> {
            vec![$((<$name as ts_rs::TS>::docs(), <$name as ts_rs::TS>::decl())),*]
        }

        /// Adds the schemas of all types.
        #[cfg(test)]
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) {
            $(generator.subschema_for::<$name>();)*
        }
    };
}

interface! {
/// Why a request was refused: the body of every answer of 400 and above.
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// What was expected, what came, and what to do; sentences for people.
    pub detail: String,
    /// For a scenario: each mistake and its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
}

/// A mistake in a scenario.
pub struct Mistake {
    /// Line in the text, from 1; `None` if it has no place.
    pub line: Option<u32>,
    /// Column in the line, from 1.
    pub column: Option<u32>,
    /// What was expected and what came.
    pub problem: String,
}

/// The server: `GET /api/server`.
pub struct ServerInfo {
    /// Version of Ranpace.
    pub version: String,
    /// The folder whose results are shown, as it was given to the command.
    pub folder: String,
    /// Whether results and recordings can be written there.
    pub can_write: bool,
    /// What runs may take.
    pub limits: Limits,
}

/// What runs and uploads may take.
pub struct Limits {
    /// Runs at a time.
    pub sessions: u32,
    /// Viewers of all runs together.
    pub viewers: u32,
    /// Length of a scenario.
    pub duration_s: f64,
    /// Size of a scenario's text.
    pub scenario_bytes: u32,
    /// Memory of a run's series.
    pub series_bytes: u32,
    /// Users of a run's cells, and its flows.
    pub users: u32,
    /// See `users`.
    pub flows: u32,
    /// Size of a recording that is uploaded.
    pub upload_bytes: u32,
    /// Size of all recordings that were uploaded.
    pub uploads_bytes: u32,
}

/// What a scenario can be made of: `GET /api/sources`.
pub struct Sources {
    /// Built-in traces, `builtin:NAME`.
    pub builtin: Vec<Named>,
    /// Recordings: uploaded ones, and those in folders of traces.
    pub recordings: Vec<Named>,
    /// Presets of cells.
    pub cells: Vec<Named>,
    /// Kinds of queue, with the keys they take.
    pub queues: Vec<Named>,
    /// Kinds of workload, with the keys they take.
    pub workloads: Vec<Named>,
    /// Complete scenarios to begin with.
    pub examples: Vec<Example>,
}

/// Something with a name.
pub struct Named {
    /// As a scenario writes it.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// How it is written, or its keys; may be empty.
    pub written: String,
}

/// A scenario to begin with.
pub struct Example {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// The whole text, with comments.
    pub text: String,
}

/// Congestion controls, as `ranpace list cc --json` writes them: `GET /api/controls`.
pub struct Controls {
    /// The algorithms.
    pub algorithms: Vec<Control>,
    /// What may stand behind a `+`.
    pub decorators: Vec<Control>,
    /// Short names, and what they stand for.
    pub short_names: BTreeMap<String, String>,
}

/// An algorithm or a decorator. It is written `NAME`, `NAME+DECORATOR`, or `NAME:option=value`.
pub struct Control {
    /// Its name.
    pub name: String,
    /// A description of one line.
    pub about: String,
    /// The publication.
    pub source: String,
    /// What carries its packets: "tcp" or "datagram"; `None` for a decorator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Whether decorators may wrap it; `None` for a decorator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decorators: Option<bool>,
    /// Its options.
    pub options: Vec<ControlOption>,
}

/// An option of a control.
pub struct ControlOption {
    /// Its key.
    pub key: String,
    /// Its values and default, in words.
    pub values: String,
    /// Its effect.
    pub about: String,
    /// What it takes.
    pub kind: OptionKind,
    /// Its default as it is written; `None` if its words name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The words of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The least value: a number, seconds of a time, bytes of a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// What an option takes.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// `on` or `off`.
    Switch,
    /// One of its words.
    Choice,
    /// A number.
    Number,
    /// A time with its unit, such as `50ms`.
    Time,
    /// A size with its unit, such as `15KB`.
    Size,
    /// Text of a form of its own.
    Text,
}

/// Whether a control can be used as it is written: `GET /api/controls/check?cc=`.
pub struct CheckedControl {
    /// Why not; empty if it can be used.
    pub problem: String,
    /// The key of the option at fault, if it is one.
    pub option: Option<String>,
}

/// A scenario described by its parts: `POST /api/scenarios/build` returns its text as [`Checked`].
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Its name.
    pub name: String,
    /// Length, in seconds.
    pub duration_s: f64,
    /// Seed of all random choices.
    pub seed: u32,
    /// Interval between rows of the series, in seconds; `None` for 0.05.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub sample_s: Option<f64>,
    /// What the flows cross.
    pub access: Access,
    /// The flows.
    pub flows: Vec<BuildFlow>,
    /// Radio information at the edge; `None` for the defaults.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub feed: Option<BuildFeed>,
    /// Whether a proxy at the edge splits connections and shares the radio by demand (RAPID); needs a cell.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub rapid: bool,
}

/// What the flows cross between "server" and the phones.
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Access {
    /// A link of fixed rate.
    Link {
        /// Rate from the server to the phone, in bit/s.
        rate_bit_s: f64,
        /// Round-trip time without queues, in seconds.
        rtt_s: f64,
        /// Kind of its queue.
        queue: String,
        /// Limit of the queue, in bytes; `None` for the kind's default.
        buffer_bytes: Option<f64>,
    },
    /// A recorded link.
    Recording {
        /// Name of the recording towards the phone: of [`Sources::builtin`] or [`Sources::recordings`].
        down: String,
        /// Name of the recording towards the server; `None` for 48 Mbit/s.
        up: Option<String>,
        /// Factor on the capacity.
        scale: f64,
        /// Round-trip time without queues, in seconds.
        rtt_s: f64,
        /// Kind of its queue.
        queue: String,
        /// Limit of the queue, in bytes; `None` for the kind's default.
        buffer_bytes: Option<f64>,
    },
    /// A cell and its users, behind a link of 1 Gbit/s.
    Cell {
        /// Its preset: of [`Sources::cells`].
        preset: String,
        /// Round-trip time of the wire, in seconds.
        rtt_s: f64,
        /// The users.
        users: Vec<BuildUser>,
    },
}

/// A user of a cell.
#[serde(deny_unknown_fields)]
pub struct BuildUser {
    /// Its name.
    pub name: String,
    /// Distance east of the base station's origin, in metres.
    pub x_m: f64,
    /// Distance north of the base station's origin, in metres.
    pub y_m: f64,
}

/// A flow of [`Build`] or [`Edit::AddFlow`].
#[serde(deny_unknown_fields)]
pub struct BuildFlow {
    /// Its name; `None` for "flow" with the next free number.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub name: Option<String>,
    /// The user that it is to, or from if `upload` is set; `None` for the only one ("phone" behind a link).
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub user: Option<String>,
    /// Whether the user sends.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub upload: bool,
    /// Congestion control with its options: `c2tcp:target=50ms`.
    pub cc: String,
    /// When it starts, in seconds; `None` for the beginning, or now.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub start_s: Option<f64>,
    /// When it stops, in seconds; `None` for the end.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub stop_s: Option<f64>,
    /// Workload as a scenario writes it, such as `{ kind = "web", page = "2MB" }`; `None` for a download without end.
    #[serde(default)]
    #[cfg_attr(test, ts(optional = nullable))]
    pub workload: Option<String>,
}

/// Radio information at the edge, as `[rnis]` of a scenario.
#[serde(deny_unknown_fields)]
pub struct BuildFeed {
    /// Time from the end of a measurement until its report can be read, in seconds.
    pub delay_s: f64,
    /// Largest relative error of reports, 0 to 0.9.
    pub error: f64,
    /// What reports contain.
    pub content: FeedContent,
}

/// What reports of radio information contain.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FeedContent {
    /// Nothing: no report arrives. In [`BuildFeed`] from the beginning.
    None,
    /// The measurement.
    Measured,
    /// A lie: a full cell.
    Full,
    /// A lie: an empty cell.
    Empty,
    /// Random values.
    Random,
}

/// A scenario as text: the body of `POST /api/scenarios/check`.
#[serde(deny_unknown_fields)]
pub struct ScenarioText {
    /// The TOML.
    pub text: String,
}

/// A scenario that can be played, and what is in it.
pub struct Checked {
    /// The TOML.
    pub text: String,
    /// What is in it.
    pub about: ScenarioAbout,
}

/// What is in a scenario.
pub struct ScenarioAbout {
    /// Its name.
    pub name: String,
    /// Length, in seconds.
    pub duration_s: f64,
    /// Interval between rows of the series, in seconds.
    pub sample_s: f64,
    /// Its seed, in decimal digits: it may exceed what a number of JavaScript holds.
    pub seed: String,
    /// Its hosts.
    pub hosts: Vec<String>,
    /// Its links.
    pub links: Vec<LinkAbout>,
    /// Its cells.
    pub cells: Vec<CellAbout>,
    /// Users of its cells, in the order of their numbers.
    pub users: Vec<UserAbout>,
    /// Its flows.
    pub flows: Vec<FlowAbout>,
    /// Its proxies.
    pub proxies: Vec<String>,
    /// The changes during the run.
    pub changes: Vec<ChangeAbout>,
    /// Memory that its series will take, in bytes; a run over the limit is refused.
    pub series_bytes: f64,
}

/// A link of a scenario.
pub struct LinkAbout {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Its rate in bit/s, of a recording the mean; `None` if it is unlimited.
    pub rate_bit_s: Option<f64>,
    /// Propagation delay, in seconds.
    pub delay_s: f64,
    /// Whether its rate follows a recording.
    pub is_recording: bool,
}

/// A cell of a scenario.
pub struct CellAbout {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// PRBs of its band.
    pub prbs: u32,
    /// Length of a slot, in seconds.
    pub slot_s: f64,
    /// Position of the base station, in metres.
    pub x_m: f64,
    /// Position of the base station, in metres.
    pub y_m: f64,
}

/// A user of a cell.
pub struct UserAbout {
    /// Its name.
    pub name: String,
    /// Index of its first cell.
    pub cell: u32,
    /// Where it is at the beginning, in metres; `None` if a recording replaces its position.
    pub position_m: Option<[f64; 2]>,
    /// Whether [`Edit::MoveUser`] can move it: not if a recording replaces its position.
    pub can_move: bool,
}

/// A flow of a scenario.
pub struct FlowAbout {
    /// Its name.
    pub name: String,
    /// The name in the file, under which it can be stopped: flows of one `count` are stopped together.
    pub entry: String,
    /// Host that sends.
    pub from: String,
    /// Host that receives.
    pub to: String,
    /// Congestion control as written; "udp" for a plain source.
    pub cc: String,
    /// When it starts, in seconds.
    pub start_s: f64,
    /// When it stops, in seconds; `None` for the end.
    pub stop_s: Option<f64>,
    /// Its workload, in words.
    pub workload: String,
}

/// A change during a run, for marks in charts.
pub struct ChangeAbout {
    /// When, in seconds.
    pub at_s: f64,
    /// What, in words.
    pub what: String,
}

/// A run to begin: the body of `POST /api/sessions`.
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The scenario.
    pub text: String,
    /// Speed to begin with.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Speed>", optional))]
    pub speed: Speed,
    /// Whether it waits for [`Action::Play`].
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub paused: bool,
}

/// A running command that can be watched: an element of `GET /api/live`.
pub struct LiveSource {
    /// Its address, for [`Attach`].
    pub address: String,
    /// What usually answers there.
    pub what: String,
}

/// A running command to watch: the body of `POST /api/live`; the answer is a [`Session`] whose stream has its figures.
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// `127.0.0.1:8012` of an RNIS server, or `unix:/run/ranpace-proxy.sock` of a proxy.
    pub address: String,
}

/// How fast virtual time goes.
#[derive(Copy)]
#[serde(untagged)]
pub enum Speed {
    /// So many virtual seconds in a second, 0.01 to 1000; a run that is too much work for it goes as fast as it can.
    Times(f64),
    /// As fast as it goes.
    Most(Most),
}

/// As fast as it goes.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Most {
    /// Written "most".
    Most,
}

/// A run: `GET /api/sessions/ID`, and the first message of its stream.
pub struct Session {
    /// Its identifier, in addresses.
    pub id: String,
    /// What is in its scenario.
    pub about: ScenarioAbout,
    /// Where it is.
    pub state: PlayState,
    /// The columns of its rows.
    pub columns: Vec<ColumnAbout>,
    /// The resource grid; `None` without cells.
    pub grid: Option<GridAbout>,
}

/// Where a run is.
pub struct PlayState {
    /// Counts the times that the rows began anew from 0: frames of another generation are to be discarded.
    pub generation: u32,
    /// Counts changes of the scenario.
    pub revision: u32,
    /// Virtual time, in seconds.
    pub now_s: f64,
    /// What it is doing.
    pub phase: Phase,
    /// The speed that was asked for.
    pub speed: Speed,
    /// The speed that is reached, in virtual seconds per second; 0 while it is paused.
    pub reached: f64,
    /// Rows so far.
    pub rows: u32,
    /// Tabs that watch it.
    pub viewers: u32,
    /// Why it failed or was ended; empty otherwise.
    pub problem: String,
}

/// What a run is doing.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Virtual time goes on.
    Playing,
    /// It waits.
    Paused,
    /// It plays from 0 to where it was, after a change or a jump.
    CatchingUp,
    /// It has reached the scenario's end.
    Ended,
    /// It cannot go on; see [`PlayState::problem`].
    Failed,
}

/// A column of a run's rows, after the column of time.
pub struct ColumnAbout {
    /// What it is about.
    pub of: Subject,
    /// The name of the flow, link or user.
    pub name: String,
    /// The column's name in the results, with its unit: `cwnd_bytes`, `state_x_max_packets`.
    pub column: String,
}

/// What a column is about.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A flow.
    Flow,
    /// A link, or a user's way through the air (`NAME.down`, `NAME.up`).
    Link,
    /// A user's radio.
    User,
}

/// The resource grid: who got which share of the PRBs, in each bin of time, per cell and direction.
pub struct GridAbout {
    /// Length of a bin, in seconds.
    pub bin_s: f64,
    /// The rows of the grid.
    pub lanes: Vec<GridLane>,
}

/// A row of the resource grid: mean PRBs per slot of one user.
pub struct GridLane {
    /// Name of the user.
    pub user: String,
    /// Number of the user in [`ScenarioAbout::users`].
    pub number: u32,
    /// Whether it is the uplink.
    pub uplink: bool,
}

/// A message of a run's stream, as text; rows and the grid come as binary frames between them.
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// First, after every change of the scenario, and when a column appeared: frames that follow have these columns.
    Session(Box<Session>),
    /// About 20 times a second while something changes.
    State(PlayState),
    /// The run is gone; the stream ends.
    Gone {
        /// Why.
        detail: String,
    },
}

/// What a run shall do: the body of `POST /api/sessions/ID/control`; the answer is [`PlayState`].
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Go on.
    Play {},
    /// Wait.
    Pause {},
    /// Wait after so many more seconds; `None` for one row.
    Step {
        /// Virtual seconds.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        by_s: Option<f64>,
    },
    /// Jump to a time and wait there: forwards, or from 0 again. Changes of the scenario stay, also those after that time.
    Seek {
        /// Virtual seconds from the beginning.
        to_s: f64,
    },
    /// Go on at another speed.
    Speed {
        /// The speed.
        speed: Speed,
    },
}

/// A change of a run's scenario from now on: the body of `POST /api/sessions/ID/edits`; the answer is [`Edited`].
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// A user goes to a place.
    MoveUser {
        /// The user's name.
        user: String,
        /// The place, in metres.
        x_m: f64,
        /// The place, in metres.
        y_m: f64,
        /// In a straight line at this speed, in m/s; `None` for at once.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        speed_m_s: Option<f64>,
    },
    /// A flow starts; `start_s` and `stop_s` are virtual times from the beginning.
    AddFlow {
        /// The flow.
        flow: BuildFlow,
    },
    /// A flow stops.
    StopFlow {
        /// Its [`FlowAbout::entry`].
        flow: String,
    },
    /// A flow stops, and one with another control or other options takes its place: a connection keeps its control.
    ReplaceFlow {
        /// Its [`FlowAbout::entry`].
        flow: String,
        /// Congestion control with its options.
        cc: String,
    },
    /// The delay that a flow's application asks for changes (C2TCP's target, for one).
    SetTarget {
        /// Its [`FlowAbout::entry`].
        flow: String,
        /// The target, in seconds.
        target_s: f64,
    },
    /// A link changes.
    SetLink {
        /// Its name.
        link: String,
        /// New rate, in bit/s.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        rate_bit_s: Option<f64>,
        /// New propagation delay, in seconds.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        delay_s: Option<f64>,
    },
    /// The feed of radio information to the edge breaks, lies, or is mended.
    SetFeed {
        /// "rnis" for the edge, "modem" for devices' own modems.
        feed: Feed,
        /// What its reports contain.
        content: FeedContent,
    },
    /// A user is handed over to another cell at the same host.
    HandOver {
        /// The user's name.
        user: String,
        /// The cell's name.
        to: String,
    },
    /// The whole scenario is replaced, and played again up to now. It may change the past, too.
    Replace {
        /// The TOML.
        text: String,
    },
}

/// A feed of radio information.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Feed {
    /// From the cells to the edge.
    Rnis,
    /// From devices' own modems.
    Modem,
}

/// A change that was made.
pub struct Edited {
    /// The virtual time from which it counts, in seconds: a moment after now.
    pub at_s: f64,
    /// What changed, in words.
    pub what: String,
    /// What is in the scenario now; its text is `GET /api/sessions/ID/scenario`.
    pub about: ScenarioAbout,
}

/// Where a run was saved: the answer of `POST /api/sessions/ID/save`.
pub struct Saved {
    /// The run's folder, for `GET /api/results/run?path=`.
    pub path: String,
}

/// A folder of results: `GET /api/results?path=`.
pub struct Folder {
    /// Its path below the server's folder, with `/`; "" is the server's folder.
    pub path: String,
    /// What is in it, by name.
    pub entries: Vec<Entry>,
    /// Runs in it, with their figures; empty if there are none.
    pub runs: Vec<RunAbout>,
    /// Rows of comparisons and sweeps, as their files have them: [`TableOfRows`].
    pub tables: Vec<TableOfRows>,
    /// Whether there are more entries than are returned.
    pub is_cut: bool,
}

/// An entry of a folder.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its path below the server's folder.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size of a file, in bytes.
    pub bytes: Option<f64>,
}

/// What an entry of a folder is.
#[derive(Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// The folder of a run that is complete.
    Run,
    /// A page to open: `GET /api/results/file?path=`.
    Report,
    /// A scenario, table or other file that can be downloaded.
    File,
}

/// A run in a folder.
pub struct RunAbout {
    /// Its path below the server's folder.
    pub path: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed, in decimal digits.
    pub seed: String,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Its flows.
    pub flows: Vec<RunFlow>,
}

/// Figures of a flow of a run.
pub struct RunFlow {
    /// Its name.
    pub name: String,
    /// Congestion control.
    pub cc: String,
    /// Goodput, in bit/s.
    pub goodput_bit_s: f64,
    /// Mean queueing delay, in seconds; `None` without packets.
    pub queueing_delay_mean_s: Option<f64>,
    /// 95th percentile of the queueing delay, in seconds.
    pub queueing_delay_p95_s: Option<f64>,
    /// Mean RTT, in seconds.
    pub rtt_mean_s: Option<f64>,
    /// Share of data packets that were dropped.
    pub loss_rate: f64,
}

/// A table of a comparison or sweep: a row per point.
pub struct TableOfRows {
    /// The file that it was read from, below the server's folder.
    pub path: String,
    /// Columns, in order.
    pub columns: Vec<String>,
    /// Rows; texts, numbers or `null`.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[serde(untagged)]
pub enum Cell {
    /// There is none.
    Nothing(()),
    /// A number.
    Number(f64),
    /// A text, or yes and no.
    Text(String),
}

/// A complete run: `GET /api/results/run?path=`.
pub struct StoredRun {
    /// Its figures.
    pub about: RunAbout,
    /// The scenario's text.
    pub text: String,
    /// Length of the run, in seconds.
    pub end_s: f64,
    /// Its tables, each a file `NAME.parquet` of `GET /api/results/series?path=&table=NAME`.
    pub tables: Vec<StoredTable>,
}

/// A table of a stored run.
pub struct StoredTable {
    /// Its name: `flow-0`, `link-2`, `user-1`, `distributions`, `transfers`, `flows`.
    pub name: String,
    /// The flow, link or user that it is about; "" if it is about the run.
    pub of: String,
    /// Its rows.
    pub rows: u32,
    /// Its columns.
    pub columns: Vec<String>,
}

/// A published experiment: an element of `GET /api/reproductions`.
pub struct Reproduction {
    /// Its name, for `ranpace reproduce NAME`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The publication, and the place in it.
    pub source: String,
    /// What it asks, in words.
    pub about: String,
    /// Figures: published beside measured.
    pub figures: Vec<ReproducedFigure>,
}

/// A figure of a published experiment.
pub struct ReproducedFigure {
    /// What it is.
    pub name: String,
    /// As published.
    pub published: String,
    /// Between what it was expected; may be empty.
    pub bounds: String,
    /// As measured when it was last recorded.
    pub measured: String,
    /// The verdict, in words.
    pub verdict: String,
}
}

impl Default for Speed {
    fn default() -> Self {
        Self::Times(1.0)
    }
}

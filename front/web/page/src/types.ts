// Generated from front/web/src/protocol.rs by `RANPACE_WRITE_INTERFACE=1 cargo test -p ranpace-web generated`.

/**
 * Why a request was refused: the body of every answer of 400 and above.
 */
export type Problem = {
/**
 * What was expected, what came, and what to do; sentences for people.
 */
detail: string,
/**
 * For a scenario: each mistake and its place.
 */
mistakes?: Array<Mistake>, };

/**
 * A mistake in a scenario.
 */
export type Mistake = {
/**
 * Line in the text, from 1; `None` if it has no place.
 */
line: number | null,
/**
 * Column in the line, from 1.
 */
column: number | null,
/**
 * What was expected and what came.
 */
problem: string, };

/**
 * The server: `GET /api/server`.
 */
export type ServerInfo = {
/**
 * Version of Ranpace.
 */
version: string,
/**
 * The folder whose results are shown, as it was given to the command.
 */
folder: string,
/**
 * Whether results and recordings can be written there.
 */
can_write: boolean,
/**
 * What runs may take.
 */
limits: Limits, };

/**
 * What runs and uploads may take.
 */
export type Limits = {
/**
 * Runs at a time.
 */
sessions: number,
/**
 * Viewers of all runs together.
 */
viewers: number,
/**
 * Length of a scenario.
 */
duration_s: number,
/**
 * Size of a scenario's text.
 */
scenario_bytes: number,
/**
 * Memory of a run's series.
 */
series_bytes: number,
/**
 * Users of a run's cells, and its flows.
 */
users: number,
/**
 * See `users`.
 */
flows: number,
/**
 * Size of a recording that is uploaded.
 */
upload_bytes: number,
/**
 * Size of all recordings that were uploaded.
 */
uploads_bytes: number, };

/**
 * What a scenario can be made of: `GET /api/sources`.
 */
export type Sources = {
/**
 * Built-in traces, `builtin:NAME`.
 */
builtin: Array<Named>,
/**
 * Recordings: uploaded ones, and those in folders of traces.
 */
recordings: Array<Named>,
/**
 * Presets of cells.
 */
cells: Array<Named>,
/**
 * Kinds of queue, with the keys they take.
 */
queues: Array<Named>,
/**
 * Kinds of workload, with the keys they take.
 */
workloads: Array<Named>,
/**
 * Complete scenarios to begin with.
 */
examples: Array<Example>, };

/**
 * Something with a name.
 */
export type Named = {
/**
 * As a scenario writes it.
 */
name: string,
/**
 * One line about it.
 */
about: string,
/**
 * How it is written, or its keys; may be empty.
 */
written: string, };

/**
 * A scenario to begin with.
 */
export type Example = {
/**
 * Its name.
 */
name: string,
/**
 * One line about it.
 */
about: string,
/**
 * The whole text, with comments.
 */
text: string, };

/**
 * Congestion controls, as `ranpace list cc --json` writes them: `GET /api/controls`.
 */
export type Controls = {
/**
 * The algorithms.
 */
algorithms: Array<Control>,
/**
 * What may stand behind a `+`.
 */
decorators: Array<Control>,
/**
 * Short names, and what they stand for.
 */
short_names: { [key in string]?: string }, };

/**
 * An algorithm or a decorator. It is written `NAME`, `NAME+DECORATOR`, or `NAME:option=value`.
 */
export type Control = {
/**
 * Its name.
 */
name: string,
/**
 * A description of one line.
 */
about: string,
/**
 * The publication.
 */
source: string,
/**
 * What carries its packets: "tcp" or "datagram"; `None` for a decorator.
 */
transport?: string | null,
/**
 * Whether decorators may wrap it; `None` for a decorator.
 */
decorators?: boolean | null,
/**
 * Its options.
 */
options: Array<ControlOption>, };

/**
 * An option of a control.
 */
export type ControlOption = {
/**
 * Its key.
 */
key: string,
/**
 * Its values and default, in words.
 */
values: string,
/**
 * Its effect.
 */
about: string,
/**
 * What it takes.
 */
kind: OptionKind,
/**
 * Its default as it is written; `None` if its words name none.
 */
default?: string | null,
/**
 * The words of a choice.
 */
words?: Array<string>,
/**
 * The least value: a number, seconds of a time, bytes of a size.
 */
low?: number | null,
/**
 * The largest value.
 */
high?: number | null, };

/**
 * What an option takes.
 */
export type OptionKind = "switch" | "choice" | "number" | "time" | "size" | "text";

/**
 * Whether a control can be used as it is written: `GET /api/controls/check?cc=`.
 */
export type CheckedControl = {
/**
 * Why not; empty if it can be used.
 */
problem: string,
/**
 * The key of the option at fault, if it is one.
 */
option: string | null, };

/**
 * A scenario described by its parts: `POST /api/scenarios/build` returns its text as [`Checked`].
 */
export type Build = {
/**
 * Its name.
 */
name: string,
/**
 * Length, in seconds.
 */
duration_s: number,
/**
 * Seed of all random choices.
 */
seed: number,
/**
 * Interval between rows of the series, in seconds; `None` for 0.05.
 */
sample_s?: number | null,
/**
 * What the flows cross.
 */
access: Access,
/**
 * The flows.
 */
flows: Array<BuildFlow>,
/**
 * Radio information at the edge; `None` for the defaults.
 */
feed?: BuildFeed | null,
/**
 * Whether a proxy at the edge splits connections and shares the radio by demand (RAPID); needs a cell.
 */
rapid?: boolean, };

/**
 * What the flows cross between "server" and the phones.
 */
export type Access = { "kind": "link",
/**
 * Rate from the server to the phone, in bit/s.
 */
rate_bit_s: number,
/**
 * Round-trip time without queues, in seconds.
 */
rtt_s: number,
/**
 * Kind of its queue.
 */
queue: string,
/**
 * Limit of the queue, in bytes; `None` for the kind's default.
 */
buffer_bytes: number | null, } | { "kind": "recording",
/**
 * Name of the recording towards the phone: of [`Sources::builtin`] or [`Sources::recordings`].
 */
down: string,
/**
 * Name of the recording towards the server; `None` for 48 Mbit/s.
 */
up: string | null,
/**
 * Factor on the capacity.
 */
scale: number,
/**
 * Round-trip time without queues, in seconds.
 */
rtt_s: number,
/**
 * Kind of its queue.
 */
queue: string,
/**
 * Limit of the queue, in bytes; `None` for the kind's default.
 */
buffer_bytes: number | null, } | { "kind": "cell",
/**
 * Its preset: of [`Sources::cells`].
 */
preset: string,
/**
 * Round-trip time of the wire, in seconds.
 */
rtt_s: number,
/**
 * The users.
 */
users: Array<BuildUser>, };

/**
 * A user of a cell.
 */
export type BuildUser = {
/**
 * Its name.
 */
name: string,
/**
 * Distance east of the base station's origin, in metres.
 */
x_m: number,
/**
 * Distance north of the base station's origin, in metres.
 */
y_m: number, };

/**
 * A flow of [`Build`] or [`Edit::AddFlow`].
 */
export type BuildFlow = {
/**
 * Its name; `None` for "flow" with the next free number.
 */
name?: string | null,
/**
 * The user that it is to, or from if `upload` is set; `None` for the only one ("phone" behind a link).
 */
user?: string | null,
/**
 * Whether the user sends.
 */
upload?: boolean,
/**
 * Congestion control with its options: `c2tcp:target=50ms`.
 */
cc: string,
/**
 * When it starts, in seconds; `None` for the beginning, or now.
 */
start_s?: number | null,
/**
 * When it stops, in seconds; `None` for the end.
 */
stop_s?: number | null,
/**
 * Workload as a scenario writes it, such as `{ kind = "web", page = "2MB" }`; `None` for a download without end.
 */
workload?: string | null, };

/**
 * Radio information at the edge, as `[rnis]` of a scenario.
 */
export type BuildFeed = {
/**
 * Time from the end of a measurement until its report can be read, in seconds.
 */
delay_s: number,
/**
 * Largest relative error of reports, 0 to 0.9.
 */
error: number,
/**
 * What reports contain.
 */
content: FeedContent, };

/**
 * What reports of radio information contain.
 */
export type FeedContent = "none" | "measured" | "full" | "empty" | "random";

/**
 * A scenario as text: the body of `POST /api/scenarios/check`.
 */
export type ScenarioText = {
/**
 * The TOML.
 */
text: string, };

/**
 * A scenario that can be played, and what is in it.
 */
export type Checked = {
/**
 * The TOML.
 */
text: string,
/**
 * What is in it.
 */
about: ScenarioAbout, };

/**
 * What is in a scenario.
 */
export type ScenarioAbout = {
/**
 * Its name.
 */
name: string,
/**
 * Length, in seconds.
 */
duration_s: number,
/**
 * Interval between rows of the series, in seconds.
 */
sample_s: number,
/**
 * Its seed, in decimal digits: it may exceed what a number of JavaScript holds.
 */
seed: string,
/**
 * Its hosts.
 */
hosts: Array<string>,
/**
 * Its links.
 */
links: Array<LinkAbout>,
/**
 * Its cells.
 */
cells: Array<CellAbout>,
/**
 * Users of its cells, in the order of their numbers.
 */
users: Array<UserAbout>,
/**
 * Its flows.
 */
flows: Array<FlowAbout>,
/**
 * Its proxies.
 */
proxies: Array<string>,
/**
 * The changes during the run.
 */
changes: Array<ChangeAbout>,
/**
 * Memory that its series will take, in bytes; a run over the limit is refused.
 */
series_bytes: number, };

/**
 * A link of a scenario.
 */
export type LinkAbout = {
/**
 * Its name.
 */
name: string,
/**
 * Where it begins.
 */
from: string,
/**
 * Where it ends.
 */
to: string,
/**
 * Its rate in bit/s, of a recording the mean; `None` if it is unlimited.
 */
rate_bit_s: number | null,
/**
 * Propagation delay, in seconds.
 */
delay_s: number,
/**
 * Whether its rate follows a recording.
 */
is_recording: boolean, };

/**
 * A cell of a scenario.
 */
export type CellAbout = {
/**
 * Its name.
 */
name: string,
/**
 * Its host.
 */
host: string,
/**
 * PRBs of its band.
 */
prbs: number,
/**
 * Length of a slot, in seconds.
 */
slot_s: number,
/**
 * Position of the base station, in metres.
 */
x_m: number,
/**
 * Position of the base station, in metres.
 */
y_m: number, };

/**
 * A user of a cell.
 */
export type UserAbout = {
/**
 * Its name.
 */
name: string,
/**
 * Index of its first cell.
 */
cell: number,
/**
 * Where it is at the beginning, in metres; `None` if a recording replaces its position.
 */
position_m: [number, number] | null,
/**
 * Whether [`Edit::MoveUser`] can move it: not if a recording replaces its position.
 */
can_move: boolean, };

/**
 * A flow of a scenario.
 */
export type FlowAbout = {
/**
 * Its name.
 */
name: string,
/**
 * The name in the file, under which it can be stopped: flows of one `count` are stopped together.
 */
entry: string,
/**
 * Host that sends.
 */
from: string,
/**
 * Host that receives.
 */
to: string,
/**
 * Congestion control as written; "udp" for a plain source.
 */
cc: string,
/**
 * When it starts, in seconds.
 */
start_s: number,
/**
 * When it stops, in seconds; `None` for the end.
 */
stop_s: number | null,
/**
 * Its workload, in words.
 */
workload: string, };

/**
 * A change during a run, for marks in charts.
 */
export type ChangeAbout = {
/**
 * When, in seconds.
 */
at_s: number,
/**
 * What, in words.
 */
what: string, };

/**
 * A run to begin: the body of `POST /api/sessions`.
 */
export type NewSession = {
/**
 * The scenario.
 */
text: string,
/**
 * Speed to begin with.
 */
speed?: Speed,
/**
 * Whether it waits for [`Action::Play`].
 */
paused?: boolean, };

/**
 * A running command that can be watched: an element of `GET /api/live`.
 */
export type LiveSource = {
/**
 * Its address, for [`Attach`].
 */
address: string,
/**
 * What usually answers there.
 */
what: string, };

/**
 * A running command to watch: the body of `POST /api/live`; the answer is a [`Session`] whose stream has its figures.
 */
export type Attach = {
/**
 * `127.0.0.1:8012` of an RNIS server, or `unix:/run/ranpace-proxy.sock` of a proxy.
 */
address: string, };

/**
 * How fast virtual time goes.
 */
export type Speed = number | Most;

/**
 * As fast as it goes.
 */
export type Most = "most";

/**
 * A run: `GET /api/sessions/ID`, and the first message of its stream.
 */
export type Session = {
/**
 * Its identifier, in addresses.
 */
id: string,
/**
 * What is in its scenario.
 */
about: ScenarioAbout,
/**
 * Where it is.
 */
state: PlayState,
/**
 * The columns of its rows.
 */
columns: Array<ColumnAbout>,
/**
 * The resource grid; `None` without cells.
 */
grid: GridAbout | null, };

/**
 * Where a run is.
 */
export type PlayState = {
/**
 * Counts the times that the rows began anew from 0: frames of another generation are to be discarded.
 */
generation: number,
/**
 * Counts changes of the scenario.
 */
revision: number,
/**
 * Virtual time, in seconds.
 */
now_s: number,
/**
 * What it is doing.
 */
phase: Phase,
/**
 * The speed that was asked for.
 */
speed: Speed,
/**
 * The speed that is reached, in virtual seconds per second; 0 while it is paused.
 */
reached: number,
/**
 * Rows so far.
 */
rows: number,
/**
 * Tabs that watch it.
 */
viewers: number,
/**
 * Why it failed or was ended; empty otherwise.
 */
problem: string, };

/**
 * What a run is doing.
 */
export type Phase = "playing" | "paused" | "catching_up" | "ended" | "failed";

/**
 * A column of a run's rows, after the column of time.
 */
export type ColumnAbout = {
/**
 * What it is about.
 */
of: Subject,
/**
 * The name of the flow, link or user.
 */
name: string,
/**
 * The column's name in the results, with its unit: `cwnd_bytes`, `state_x_max_packets`.
 */
column: string, };

/**
 * What a column is about.
 */
export type Subject = "flow" | "link" | "user";

/**
 * The resource grid: who got which share of the PRBs, in each bin of time, per cell and direction.
 */
export type GridAbout = {
/**
 * Length of a bin, in seconds.
 */
bin_s: number,
/**
 * The rows of the grid.
 */
lanes: Array<GridLane>, };

/**
 * A row of the resource grid: mean PRBs per slot of one user.
 */
export type GridLane = {
/**
 * Name of the user.
 */
user: string,
/**
 * Number of the user in [`ScenarioAbout::users`].
 */
number: number,
/**
 * Whether it is the uplink.
 */
uplink: boolean, };

/**
 * A message of a run's stream, as text; rows and the grid come as binary frames between them.
 */
export type Message = { "type": "session" } & Session | { "type": "state" } & PlayState | { "type": "gone",
/**
 * Why.
 */
detail: string, };

/**
 * What a run shall do: the body of `POST /api/sessions/ID/control`; the answer is [`PlayState`].
 */
export type Action = { "action": "play", } | { "action": "pause", } | { "action": "step",
/**
 * Virtual seconds.
 */
by_s?: number | null, } | { "action": "seek",
/**
 * Virtual seconds from the beginning.
 */
to_s: number, } | { "action": "speed",
/**
 * The speed.
 */
speed: Speed, };

/**
 * A change of a run's scenario from now on: the body of `POST /api/sessions/ID/edits`; the answer is [`Edited`].
 */
export type Edit = { "edit": "move_user",
/**
 * The user's name.
 */
user: string,
/**
 * The place, in metres.
 */
x_m: number,
/**
 * The place, in metres.
 */
y_m: number,
/**
 * In a straight line at this speed, in m/s; `None` for at once.
 */
speed_m_s?: number | null, } | { "edit": "add_flow",
/**
 * The flow.
 */
flow: BuildFlow, } | { "edit": "stop_flow",
/**
 * Its [`FlowAbout::entry`].
 */
flow: string, } | { "edit": "replace_flow",
/**
 * Its [`FlowAbout::entry`].
 */
flow: string,
/**
 * Congestion control with its options.
 */
cc: string, } | { "edit": "set_target",
/**
 * Its [`FlowAbout::entry`].
 */
flow: string,
/**
 * The target, in seconds.
 */
target_s: number, } | { "edit": "set_link",
/**
 * Its name.
 */
link: string,
/**
 * New rate, in bit/s.
 */
rate_bit_s?: number | null,
/**
 * New propagation delay, in seconds.
 */
delay_s?: number | null, } | { "edit": "set_feed",
/**
 * "rnis" for the edge, "modem" for devices' own modems.
 */
feed: Feed,
/**
 * What its reports contain.
 */
content: FeedContent, } | { "edit": "hand_over",
/**
 * The user's name.
 */
user: string,
/**
 * The cell's name.
 */
to: string, } | { "edit": "replace",
/**
 * The TOML.
 */
text: string, };

/**
 * A feed of radio information.
 */
export type Feed = "rnis" | "modem";

/**
 * A change that was made.
 */
export type Edited = {
/**
 * The virtual time from which it counts, in seconds: a moment after now.
 */
at_s: number,
/**
 * What changed, in words.
 */
what: string,
/**
 * What is in the scenario now; its text is `GET /api/sessions/ID/scenario`.
 */
about: ScenarioAbout, };

/**
 * Where a run was saved: the answer of `POST /api/sessions/ID/save`.
 */
export type Saved = {
/**
 * The run's folder, for `GET /api/results/run?path=`.
 */
path: string, };

/**
 * A folder of results: `GET /api/results?path=`.
 */
export type Folder = {
/**
 * Its path below the server's folder, with `/`; "" is the server's folder.
 */
path: string,
/**
 * What is in it, by name.
 */
entries: Array<Entry>,
/**
 * Runs in it, with their figures; empty if there are none.
 */
runs: Array<RunAbout>,
/**
 * Rows of comparisons and sweeps, as their files have them: [`TableOfRows`].
 */
tables: Array<TableOfRows>,
/**
 * Whether there are more entries than are returned.
 */
is_cut: boolean, };

/**
 * An entry of a folder.
 */
export type Entry = {
/**
 * Its name.
 */
name: string,
/**
 * Its path below the server's folder.
 */
path: string,
/**
 * What it is.
 */
kind: EntryKind,
/**
 * Size of a file, in bytes.
 */
bytes: number | null, };

/**
 * What an entry of a folder is.
 */
export type EntryKind = "folder" | "run" | "report" | "file";

/**
 * A run in a folder.
 */
export type RunAbout = {
/**
 * Its path below the server's folder.
 */
path: string,
/**
 * The scenario's name.
 */
scenario: string,
/**
 * The seed, in decimal digits.
 */
seed: string,
/**
 * Whether it was stopped before its end.
 */
interrupted: boolean,
/**
 * Its flows.
 */
flows: Array<RunFlow>, };

/**
 * Figures of a flow of a run.
 */
export type RunFlow = {
/**
 * Its name.
 */
name: string,
/**
 * Congestion control.
 */
cc: string,
/**
 * Goodput, in bit/s.
 */
goodput_bit_s: number,
/**
 * Mean queueing delay, in seconds; `None` without packets.
 */
queueing_delay_mean_s: number | null,
/**
 * 95th percentile of the queueing delay, in seconds.
 */
queueing_delay_p95_s: number | null,
/**
 * Mean RTT, in seconds.
 */
rtt_mean_s: number | null,
/**
 * Share of data packets that were dropped.
 */
loss_rate: number, };

/**
 * A table of a comparison or sweep: a row per point.
 */
export type TableOfRows = {
/**
 * The file that it was read from, below the server's folder.
 */
path: string,
/**
 * Columns, in order.
 */
columns: Array<string>,
/**
 * Rows; texts, numbers or `null`.
 */
rows: Array<Array<Cell>>, };

/**
 * A cell of a table.
 */
export type Cell = null | number | string;

/**
 * A complete run: `GET /api/results/run?path=`.
 */
export type StoredRun = {
/**
 * Its figures.
 */
about: RunAbout,
/**
 * The scenario's text.
 */
text: string,
/**
 * Length of the run, in seconds.
 */
end_s: number,
/**
 * Its tables, each a file `NAME.parquet` of `GET /api/results/series?path=&table=NAME`.
 */
tables: Array<StoredTable>, };

/**
 * A table of a stored run.
 */
export type StoredTable = {
/**
 * Its name: `flow-0`, `link-2`, `user-1`, `distributions`, `transfers`, `flows`.
 */
name: string,
/**
 * The flow, link or user that it is about; "" if it is about the run.
 */
of: string,
/**
 * Its rows.
 */
rows: number,
/**
 * Its columns.
 */
columns: Array<string>, };

/**
 * A published experiment: an element of `GET /api/reproductions`.
 */
export type Reproduction = {
/**
 * Its name, for `ranpace reproduce NAME`.
 */
name: string,
/**
 * Its title.
 */
title: string,
/**
 * The publication, and the place in it.
 */
source: string,
/**
 * What it asks, in words.
 */
about: string,
/**
 * Figures: published beside measured.
 */
figures: Array<ReproducedFigure>, };

/**
 * A figure of a published experiment.
 */
export type ReproducedFigure = {
/**
 * What it is.
 */
name: string,
/**
 * As published.
 */
published: string,
/**
 * Between what it was expected; may be empty.
 */
bounds: string,
/**
 * As measured when it was last recorded.
 */
measured: string,
/**
 * The verdict, in words.
 */
verdict: string, };

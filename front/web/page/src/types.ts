// Generated from front/web/src/protocol.rs; do not edit.

export type Problem = { detail: string, mistakes?: Array<Mistake> };

export type Mistake = { line: number | null, column: number | null, problem: string };

export type ServerInfo = { version: string, folder: string, can_write: boolean, limits: Limits };

export type Limits = { sessions: number, viewers: number, duration_s: number, scenario_bytes: number, series_bytes: number, users: number, flows: number, upload_bytes: number, uploads_bytes: number };

export type Sources = { builtin: Array<Named>, recordings: Array<Named>, cells: Array<Named>, queues: Array<Named>, workloads: Array<Named>, examples: Array<Example> };

export type Named = { name: string, about: string, written: string };

export type Example = { name: string, about: string, text: string };

export type Controls = { algorithms: Array<Control>, decorators: Array<Control>, short_names: { [key in string]: string } };

export type Control = { name: string, about: string, source: string, transport?: string | null, decorators?: boolean | null, options: Array<ControlOption> };

export type ControlOption = { key: string, values: string, about: string };

export type Build = { name: string, duration_s: number, seed: number, sample_s?: number | null, access: Access, flows: Array<BuildFlow>, feed?: BuildFeed | null, rapid?: boolean };

export type Access = { "kind": "link", rate_bit_s: number, rtt_s: number, queue: string, buffer_bytes: number | null } | { "kind": "recording", down: string, up: string | null, scale: number, rtt_s: number, queue: string, buffer_bytes: number | null } | { "kind": "cell", preset: string, rtt_s: number, users: Array<BuildUser> };

export type BuildUser = { name: string, x_m: number, y_m: number };

export type BuildFlow = { name?: string | null, user?: string | null, upload?: boolean, cc: string, start_s?: number | null, stop_s?: number | null, workload?: string | null };

export type BuildFeed = { delay_s: number, error: number, content: FeedContent };

export type FeedContent = "none" | "measured" | "full" | "empty" | "random";

export type ScenarioText = { text: string };

export type Checked = { text: string, about: ScenarioAbout };

export type ScenarioAbout = { name: string, duration_s: number, sample_s: number, seed: string, hosts: Array<string>, links: Array<LinkAbout>, cells: Array<CellAbout>, users: Array<UserAbout>, flows: Array<FlowAbout>, proxies: Array<string>, changes: Array<ChangeAbout>, series_bytes: number };

export type LinkAbout = { name: string, from: string, to: string, rate_bit_s: number | null, delay_s: number, is_recording: boolean };

export type CellAbout = { name: string, host: string, prbs: number, slot_s: number, x_m: number, y_m: number };

export type UserAbout = { name: string, cell: number, position_m: [number, number] | null, can_move: boolean };

export type FlowAbout = { name: string, entry: string, from: string, to: string, cc: string, start_s: number, stop_s: number | null, workload: string };

export type ChangeAbout = { at_s: number, what: string };

export type NewSession = { text: string, speed?: Speed, paused?: boolean };

export type Speed = number | Most;

export type Most = "most";

export type Session = { id: string, about: ScenarioAbout, state: PlayState, columns: Array<ColumnAbout>, grid: GridAbout | null };

export type PlayState = { generation: number, revision: number, now_s: number, phase: Phase, speed: Speed, reached: number, rows: number, viewers: number, problem: string };

export type Phase = "playing" | "paused" | "catching_up" | "ended" | "failed";

export type ColumnAbout = { of: Subject, name: string, column: string };

export type Subject = "flow" | "link" | "user";

export type GridAbout = { bin_s: number, lanes: Array<GridLane> };

export type GridLane = { user: string, number: number, uplink: boolean };

export type Message = { "type": "session" } & Session | { "type": "state" } & PlayState | { "type": "gone", detail: string };

export type Action = { "action": "play" } | { "action": "pause" } | { "action": "step", by_s?: number | null } | { "action": "seek", to_s: number } | { "action": "speed", speed: Speed };

export type Edit = { "edit": "move_user", user: string, x_m: number, y_m: number, speed_m_s?: number | null } | { "edit": "add_flow", flow: BuildFlow } | { "edit": "stop_flow", flow: string } | { "edit": "replace_flow", flow: string, cc: string } | { "edit": "set_target", flow: string, target_s: number } | { "edit": "set_link", link: string, rate_bit_s?: number | null, delay_s?: number | null } | { "edit": "set_feed", feed: Feed, content: FeedContent } | { "edit": "hand_over", user: string, to: string } | { "edit": "replace", text: string };

export type Feed = "rnis" | "modem";

export type Edited = { at_s: number, what: string, about: ScenarioAbout };

export type Saved = { path: string };

export type Folder = { path: string, entries: Array<Entry>, runs: Array<RunAbout>, tables: Array<TableOfRows>, is_cut: boolean };

export type Entry = { name: string, path: string, kind: EntryKind, bytes: number | null };

export type EntryKind = "folder" | "run" | "report" | "file";

export type RunAbout = { path: string, scenario: string, seed: string, interrupted: boolean, flows: Array<RunFlow> };

export type RunFlow = { name: string, cc: string, goodput_bit_s: number, queueing_delay_mean_s: number | null, queueing_delay_p95_s: number | null, rtt_mean_s: number | null, loss_rate: number };

export type TableOfRows = { path: string, columns: Array<string>, rows: Array<Array<Cell>> };

export type Cell = null | number | string;

export type StoredRun = { about: RunAbout, text: string, end_s: number, tables: Array<StoredTable> };

export type StoredTable = { name: string, of: string, rows: number, columns: Array<string> };

export type Reproduction = { name: string, title: string, source: string, about: string, figures: Array<ReproducedFigure> };

export type ReproducedFigure = { name: string, published: string, bounds: string, measured: string, verdict: string };

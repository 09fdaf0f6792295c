// A run, or a command that is watched: its charts, and what can be changed while it plays.

import { announce, field, h, replace, select } from "./dom";
import { Chart, type ChartOptions, type Trace } from "./chart";
import { number, titleOf, unitOf, type Unit } from "./columns";
import { ControlEditor } from "./control";
import { ResourceGrid } from "./heat";
import { CellMap } from "./map";
import { paint } from "./paint";
import { Run, type RunEvent } from "./run";
import { CONTENTS, FlowForm, numberInput } from "./setup";
import { kindOf, statesOf } from "./states";
import type { Pairs } from "./chart";
import type { BuildFlow, Controls, Edit, Feed, FeedContent, FlowAbout, LinkAbout, ScenarioAbout } from "./types";
import type { TimeView } from "./view";

/** Arrow keys move a user in steps; the run is asked when they rest. */
const MOVE_REST_MS = 250;
const MOST_LIMITS = 3;

export interface PanelHost {
  /** Those that flows may have; undefined: what runs elsewhere is watched, and nothing can be changed. */
  controls: Controls | undefined;
  view: TimeView;
  /** Charts of two runs side by side have the same scales. */
  pairs: Pairs;
  /** Something about the run has changed. */
  changed: (panel: Panel, event: RunEvent) => void;
  /** The charts are other ones. */
  laidOut: () => void;
  /** An edit was made, to be repeated beside. */
  edited: (panel: Panel, edit: Edit) => void;
}

export class Panel {
  /** Its charts. */
  readonly element: HTMLElement;
  /** Its users, its tables, and what can be changed while it plays. */
  readonly live: HTMLElement;
  run!: Run;
  private readonly cards = h("div", {});
  private readonly charts = h("div", { class: "charts" });
  private drawn: (Chart | ResourceGrid)[] = [];
  private signature = "";
  private liveSignature = "";
  private map: CellMap | undefined;
  private flow = "";
  private user = "";
  private readonly moves = new Map<string, number>();
  private edits: Promise<unknown> = Promise.resolve();
  private readonly drawMap = () => this.showUsers();

  /** Whether the picture stands still while the figures go on. */
  private still = false;

  constructor(
    readonly title: string,
    private readonly host: PanelHost,
  ) {
    const heading = host.controls ? "Change now" : "";
    this.element = h("section", { class: "panel", "aria-label": title || "Run" }, title ? h("h2", {}, title) : null, this.charts);
    this.live = h("section", { class: "live", "aria-label": `${heading || "Watched"}${title && `, ${title}`}` }, title || heading ? h("h2", {}, title || heading) : null, this.cards);
  }

  async begin(text: string, paused: boolean, speed: number | "most"): Promise<void> {
    this.run = await Run.begin({ text, paused, speed }, (event) => this.hear(event));
    this.layout();
  }

  /** Watches the command that answers at this address. */
  async attach(address: string): Promise<void> {
    this.run = await Run.attach(address, (event) => this.hear(event));
    this.layout();
  }

  /** Holds the picture still, or shows what has come since. */
  hold(still: boolean): void {
    this.still = still;
    if (still) return;
    this.layout();
    for (const chart of this.drawn) chart.update();
    this.showUsers();
  }

  destroy(): void {
    if (this.host.controls) this.run?.end();
    else this.run?.detach();
    for (const chart of this.drawn) chart.destroy();
    this.host.pairs.forget(this.drawn);
    this.element.remove();
    this.live.remove();
  }

  restyle(): void {
    for (const chart of this.drawn) chart.restyle();
    this.showUsers();
  }

  /** Makes a change now, after those before it. */
  edit(edit: Edit, repeat = true): Promise<void> {
    const made = this.edits.then(async () => {
      const edited = await this.run.edit(edit);
      announce(`${this.title ? `${this.title}: ` : ""}${edited.what} (from ${number(edited.at_s)} s)`);
      if (repeat) this.host.edited(this, edit);
    });
    this.edits = made.catch((fault: unknown) => announce(fault instanceof Error ? fault.message : String(fault), "error"));
    return made;
  }

  private hear(event: RunEvent): void {
    if (!this.run) return;
    const times = this.run.rowTimes();
    if (event === "rows" && times.length) this.host.view.extend(times.at(-1)!);
    if (event === "about" && !this.still) this.layout();
    if (event === "rows" && !this.still) {
      for (const chart of this.drawn) chart.update();
      if (this.map) paint(this.drawMap);
    }
    this.host.changed(this, event);
  }

  private layout(): void {
    const { about } = this.run.session;
    if (!about.flows.some(({ name }) => name === this.flow)) this.flow = about.flows[0]?.name ?? "";
    if (!about.users.some(({ name }) => name === this.user)) this.user = about.users[0]?.name ?? "";
    this.layoutLive(about);
    this.layoutCharts();
  }

  // ---- changes while it plays ----

  private layoutLive(about: ScenarioAbout): void {
    const subjects = this.run.session.columns.map(({ of, name }) => `${of} ${name}`);
    const signature = JSON.stringify([about.flows, about.users.map(({ name }) => name), about.links, about.cells, about.changes, [...new Set(subjects)]]);
    if (signature === this.liveSignature) return;
    this.liveSignature = signature;
    const opened = (name: "part" | "flow") => new Set([...this.cards.querySelectorAll<HTMLDetailsElement>(`details[data-${name}]`)].filter((part) => part.open).map((part) => part.dataset[name]));
    const [open, openFlows] = [opened("part"), opened("flow")];
    const known = new Set([...this.cards.querySelectorAll<HTMLElement>("[data-part]")].map((part) => part.dataset["part"]));
    const part = (name: string, title: string, first: boolean, ...content: (HTMLElement | null)[]) =>
      h("details", { class: "card", "data-part": name, open: known.has(name) ? open.has(name) : first }, h("summary", {}, title), content);
    const { controls } = this.host;
    // Only an emulation says where its users are.
    const placed = controls ? about.users.length > 0 : about.users.some(({ name }) => this.run.columnsOf("user", name).includes("x_m"));
    this.map = placed ? (this.map ?? new CellMap((user, x, y) => this.moveSoon(user, x, y))) : undefined;
    // On a narrow page the charts would be far below.
    const wide = matchMedia("(min-width: 40rem)").matches;
    const cards = [
      this.map ? part("map", "Users", true, this.map.element, controls && about.cells.length > 1 ? this.handover(about) : null) : null,
      controls ? part("flows", "Flows", wide, this.flows(about, controls)) : null,
      controls && about.users.length ? part("feed", "Radio information", false, this.feed()) : null,
      controls && about.links.length ? part("links", "Links", wide && !this.map, this.links(about)) : null,
      part("tables", "Tables so far", false, this.tables()),
      about.changes.length ? part("changes", `Changes (${about.changes.length})`, wide, changeList(about)) : null,
    ];
    replace(this.cards, cards);
    for (const flow of this.cards.querySelectorAll<HTMLDetailsElement>("details[data-flow]")) flow.open = openFlows.has(flow.dataset["flow"]);
    this.showUsers();
  }

  private moveSoon(user: string, x: number, y: number): void {
    clearTimeout(this.moves.get(user));
    this.moves.set(user, window.setTimeout(() => void this.edit({ edit: "move_user", user, x_m: x, y_m: y }), MOVE_REST_MS));
  }

  private showUsers(): void {
    if (!this.map) return;
    const { run } = this;
    const { about } = run.session;
    this.map.show(
      about.cells.map(({ name, x_m, y_m }) => ({ name, x: x_m, y: y_m })),
      about.users.map(({ name, position_m, can_move }) => {
        const [x, y] = [run.last("user", name, "x_m"), run.last("user", name, "y_m")];
        const cqi = run.last("user", name, "cqi");
        const note = Number.isNaN(cqi) ? undefined : `CQI ${cqi}`;
        return { name, x: Number.isNaN(x) ? (position_m?.[0] ?? 0) : x, y: Number.isNaN(y) ? (position_m?.[1] ?? 0) : y, movable: can_move, ...(note ? { note } : {}) };
      }),
    );
  }

  private handover(about: ScenarioAbout): HTMLElement {
    const user = select(about.users.map(({ name }) => [name, name]), this.user, () => undefined);
    const to = select(about.cells.map(({ name }) => [name, name]), about.cells[1]!.name, () => undefined);
    const go = h("button", { type: "button", onclick: () => void this.edit({ edit: "hand_over", user: user.value, to: to.value }) }, "Hand over");
    return h("div", { class: "row" }, field("User", user), field("To cell", to), go);
  }

  private flows(about: ScenarioAbout, controls: Controls): HTMLElement {
    const users = about.users.map(({ name }) => name);
    const fresh: BuildFlow = { user: users[0] ?? null, cc: "cubic" };
    const add = h("details", { class: "flow", "data-flow": "" }, h("summary", {}, "Add a flow now"), new FlowForm(fresh, users, controls).element);
    add.append(h("button", { type: "button", class: "primary", onclick: () => void this.edit({ edit: "add_flow", flow: { ...fresh } }) }, "Add"));
    return h("div", {}, about.flows.map((flow) => this.flowRow(flow, controls)), add);
  }

  private flowRow(flow: FlowAbout, controls: Controls): HTMLElement {
    const now = this.run.state.now_s;
    const over = flow.stop_s !== null && flow.stop_s <= now;
    const editor = new ControlEditor(controls, flow.cc);
    const change = h("button", { type: "button", class: "primary", onclick: () => void this.edit({ edit: "replace_flow", flow: flow.entry, cc: editor.value() }) }, "Change");
    const target = /c2tcp/.test(flow.cc)
      ? h(
          "div",
          { class: "row" },
          field("Target delay, ms", numberInput(Number(/target=(\d+(?:\.\d+)?)ms/.exec(flow.cc)?.[1] ?? 50) / 1e3, 1e-3, { min: 1 }, (value) => {
            if (value) void this.edit({ edit: "set_target", flow: flow.entry, target_s: value });
          }), "What the application asks for; it counts at once."),
        )
      : null;
    const when = over ? `ended at ${number(flow.stop_s!)} s` : flow.start_s > now ? `starts at ${number(flow.start_s)} s` : flow.stop_s === null ? "" : `stops at ${number(flow.stop_s)} s`;
    return h(
      "details",
      { class: over ? "flow over" : "flow", "data-flow": flow.name },
      h("summary", {}, h("b", {}, flow.name), ` ${flow.cc}, ${flow.from} → ${flow.to} ${when && `(${when})`}`),
      h("p", { class: "hint" }, `Workload: ${flow.workload}. A connection keeps its control: a change stops this flow and starts one with the other.`),
      target,
      over || flow.cc === "udp" ? null : [editor.element, change],
      over ? null : h("button", { type: "button", onclick: () => void this.edit({ edit: "stop_flow", flow: flow.entry }) }, "Stop this flow"),
    );
  }

  private feed(): HTMLElement {
    const feed = select([["rnis", "from the cell to the edge"], ["modem", "from the devices' own modems"]], "rnis", () => undefined);
    const buttons = CONTENTS.map(([content, text]) =>
      h("button", { type: "button", "data-content": content, onclick: () => void this.edit({ edit: "set_feed", feed: feed.value as Feed, content: content satisfies FeedContent }) }, text),
    );
    return h("div", {}, field("Reports", feed), h("p", { class: "hint" }, "From now on reports contain:"), h("div", { class: "buttons" }, buttons));
  }

  /** The rows so far of each flow, link and user. */
  private tables(): HTMLElement {
    const { id, columns } = this.run.session;
    const subjects = new Map(columns.map(({ of, name }) => [`${of} ${name}`, { of, name }]));
    const link = (of: string, name: string, format: string, text: string) =>
      h("a", { href: `api/sessions/${id}/table?${new URLSearchParams({ of, name, format }).toString()}`, download: `${of}-${name}.${format}` }, text);
    return h("ul", { class: "plain" }, [...subjects.values()].map(({ of, name }) => h("li", {}, `${of} ${name}: `, link(of, name, "csv", "CSV"), " ", link(of, name, "parquet", "Parquet"))));
  }

  private links(about: ScenarioAbout): HTMLElement {
    const row = (link: LinkAbout) => {
      const rate = numberInput(link.rate_bit_s, 1e6, { min: 0 }, (value) => {
        if (value) void this.edit({ edit: "set_link", link: link.name, rate_bit_s: value });
      });
      const delay = numberInput(link.delay_s, 1e-3, { min: 0 }, (value) => {
        if (value !== null) void this.edit({ edit: "set_link", link: link.name, delay_s: value });
      });
      return h("fieldset", { class: "row" }, h("legend", {}, `${link.name}: ${link.from} → ${link.to}`), field("Rate, Mbit/s", rate), field("Delay, ms", delay));
    };
    return h("div", {}, about.links.map(row));
  }

  // ---- charts ----

  private layoutCharts(): void {
    const { grid, about } = this.run.session;
    const [common, own] = [this.commonCharts(), this.ownCharts()];
    const signature = JSON.stringify([[...common, ...own].map(({ title, unit, states, traces }) => [title, unit, states, traces.map(({ label }) => label)]), grid, about.cells, this.flow, this.user]);
    if (signature !== this.signature) {
      this.signature = signature;
      for (const chart of this.drawn) chart.destroy();
      this.host.pairs.forget(this.drawn);
      const [shared, chosen] = [common, own].map((options) => options.map((one) => new Chart(one, this.host.view, this.host.pairs))) as [Chart[], Chart[]];
      const grids = this.grids();
      this.drawn = [...shared, ...chosen, ...grids];
      const choose = h(
        "div",
        { class: "row choose" },
        about.flows.length > 1 ? field("States of flow", select(about.flows.map(({ name, cc }) => [name, `${name} (${cc})`]), this.flow, (name) => this.choose(name, this.user))) : null,
        about.users.length > 1 ? field("Radio of user", select(about.users.map(({ name }) => [name, name]), this.user, (name) => this.choose(this.flow, name))) : null,
      );
      const elements = (charts: readonly (Chart | ResourceGrid)[]) => charts.map(({ element }) => element);
      replace(this.charts, elements(shared.slice(0, 1)), elements(grids), elements(shared.slice(1)), choose, elements(chosen));
      this.host.laidOut();
    }
    for (const chart of this.drawn) {
      if (chart instanceof Chart) chart.mark(about.changes.map(({ at_s }) => at_s));
      chart.update();
    }
  }

  private choose(flow: string, user: string): void {
    [this.flow, this.user] = [flow, user];
    this.layoutCharts();
  }

  private grids(): ResourceGrid[] {
    const { grid, about } = this.run.session;
    if (!grid) return [];
    return about.cells.flatMap((cell, number) =>
      [false, true].flatMap((uplink) => {
        const lanes = grid.lanes.map((lane, index) => ({ lane, index })).filter(({ lane }) => lane.uplink === uplink && (about.users[lane.number]?.cell ?? 0) === number);
        if (lanes.length === 0) return [];
        const where = about.cells.length > 1 ? `, ${cell.name}` : "";
        return [
          new ResourceGrid(
            {
              title: `Who gets which share of the ${uplink ? "uplink" : "downlink"}${where}`,
              prbs: cell.prbs,
              bin_s: grid.bin_s,
              times: this.run.binTimes,
              lanes: lanes.map(({ lane, index }) => ({ label: lane.user, values: () => this.run.lane(index) })),
            },
            this.host.view,
          ),
        ];
      }),
    );
  }

  private trace(of: "flow" | "link" | "user", name: string, column: string, label: string, colour: Trace["colour"]): Trace {
    return { label, colour, times: this.run.rowTimes, values: () => this.run.values(of, name, column) };
  }

  /** The links whose capacities bound the flows, each with its first flow: users' radio, and the slowest wired link otherwise. */
  private bottlenecks(about: ScenarioAbout): { link: string; flow: number }[] {
    const found = new Map<string, number>();
    about.flows.forEach((flow, index) => {
      const add = (link: string) => {
        if (!found.has(link)) found.set(link, index);
      };
      if (about.users.some(({ name }) => name === flow.to)) add(`${flow.to}.down`);
      else if (about.users.some(({ name }) => name === flow.from)) add(`${flow.from}.up`);
      else {
        const towards = about.links.filter(({ rate_bit_s, from, to }) => rate_bit_s !== null && (to === flow.to || from === flow.from));
        const slowest = towards.sort((a, b) => a.rate_bit_s! - b.rate_bit_s!)[0];
        if (slowest) add(slowest.name);
      }
    });
    return [...found].map(([link, flow]) => ({ link, flow })).filter(({ link }) => {
      const columns = this.run.columnsOf("link", link);
      return columns.length === 0 || columns.includes("capacity_bit_s");
    });
  }

  private known(of: "flow" | "link" | "user", name: string, column: string): boolean {
    const columns = this.run.columnsOf(of, name);
    // Before its first row a flow has no columns yet.
    return columns.length === 0 || columns.includes(column);
  }

  /** A trace of each of these that has the column. */
  private traces(of: "flow" | "link" | "user", names: readonly string[], column: string): Trace[] {
    return names.map((name, index) => this.trace(of, name, column, name, index)).filter((_, index) => this.known(of, names[index]!, column));
  }

  /** Charts of all flows. */
  private commonCharts(): ChartOptions[] {
    const { about } = this.run.session;
    const flows = about.flows.map(({ name }) => name);
    const users = about.users.map(({ name }) => name);
    const perFlow = (column: string) => this.traces("flow", flows, column);
    const bottlenecks = this.bottlenecks(about);
    const capacity = bottlenecks
      .slice(0, MOST_LIMITS)
      .map(({ link, flow }) => ({ ...this.trace("link", link, "capacity_bit_s", `capacity of ${link}`, bottlenecks.length === 1 ? "reference" : flow), limit: true }));
    const charts: ChartOptions[] = [
      { title: "Rate against capacity", about: "Goodput of each flow, and what the link or the user's channel could carry. Data that waited for one lost packet comes at once, in a peak.", boundByLimits: true, unit: unitOf("_bit_s"), traces: [...perFlow("goodput_bit_s"), ...capacity] },
      { title: "Queueing delay", unit: unitOf("_s"), traces: perFlow("queueing_delay_mean_s") },
      { title: "Round-trip time", unit: unitOf("_s"), traces: perFlow("srtt_s") },
      { title: "Congestion window", unit: unitOf("_bytes"), traces: perFlow("cwnd_bytes") },
      { title: "Pacing rate", about: "Empty where the window alone decides.", unit: unitOf("_bit_s"), traces: perFlow("pacing_bit_s") },
      {
        title: "Waiting data",
        about: "In the base station's buffers, in the queues of links, or in a proxy that is watched.",
        unit: unitOf("_bytes"),
        traces: users.length ? this.traces("user", users, "queue_bytes") : this.traces("link", bottlenecks.map(({ link }) => link), "queued_bytes"),
      },
    ];
    return charts.filter(({ traces }) => traces.length > 0);
  }

  /** Charts of the flow and of the user that are chosen. */
  private ownCharts(): ChartOptions[] {
    const { flows } = this.run.session.about;
    const cc = flows.find(({ name }) => name === this.flow)?.cc ?? "";
    const charts = this.stateCharts(this.flow, cc);
    if (this.user) {
      const { user } = this;
      const lines = (...named: [column: string, label: string][]) =>
        named.map(([column, label], place) => this.trace("user", user, column, label, place)).filter((_, place) => this.known("user", user, named[place]![0]));
      charts.push(
        { title: `CQI and MCS of ${this.user}`, unit: { name: "index", factor: 1 }, traces: lines(["cqi", "CQI"], ["mcs", "MCS"], ["uplink_mcs", "MCS, uplink"]) },
        { title: `SINR of ${this.user}`, unit: unitOf("_db"), fromZero: false, traces: lines(["sinr_db", "downlink"], ["uplink_sinr_db", "uplink"]) },
        { title: `Rate of the radio of ${this.user}`, about: "Size of the transport blocks sent for the first time.", unit: unitOf("_bit_s"), traces: lines(["scheduled_bit_s", "downlink"], ["uplink_scheduled_bit_s", "uplink"]) },
      );
    }
    return charts.filter(({ traces }) => traces.length > 0);
  }

  /** The control's own state: a chart for each set of named states, and one for all quantities of a unit. */
  private stateCharts(flow: string, cc: string): ChartOptions[] {
    const own = this.run.columnsOf("flow", flow).filter((column) => /^(state|receiver|proxy)_/.test(column));
    const charts: ChartOptions[] = [];
    const groups = new Map<string, { unit: Unit; title: string; columns: string[] }>();
    for (const column of own) {
      const states = statesOf(column, cc);
      if (states) {
        const title = column === "state_state" ? `State of ${flow}` : `${titleOf(column)} of ${flow}`;
        charts.push({ title, about: cc, unit: { name: "", factor: 1 }, states, traces: [this.trace("flow", flow, column, titleOf(column), 0)] });
      } else {
        const { unit, title } = kindOf(column, cc);
        const group = groups.get(unit.name || title) ?? { unit, title, columns: [] };
        groups.set(unit.name || title, group);
        group.columns.push(column);
      }
    }
    for (const { unit, title, columns } of groups.values()) {
      charts.push({
        title: `${title || "Internals"} of ${flow}`,
        ...(title ? {} : { about: cc }),
        unit,
        traces: columns.map((column, index) => this.trace("flow", flow, column, titleOf(column), index)),
      });
    }
    return charts;
  }
}

function changeList(about: ScenarioAbout): HTMLElement {
  return h("ol", { class: "changes" }, about.changes.map(({ at_s, what }) => h("li", {}, `${number(at_s)} s: ${what}`)));
}

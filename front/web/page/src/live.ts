// The view of commands that run: it watches their figures, and changes nothing.

import { ask } from "./api";
import { Chart, type ChartOptions } from "./chart";
import { titleOf, unitOf } from "./columns";
import { announce, field, h, replace, select } from "./dom";
import { ResourceGrid } from "./heat";
import { link, note, type Shown } from "./route";
import { Run, type RunEvent } from "./run";
import { statesOf } from "./states";
import type { LiveSource } from "./types";
import { TimeView } from "./view";

const WINDOWS: readonly (readonly [string, string])[] = [
  ["10", "the last 10 s"],
  ["60", "the last 60 s"],
  ["", "all"],
];

export class Live implements Shown {
  readonly element = h("div", { class: "results" });
  private readonly view = new TimeView();
  private readonly list = h("div", {});
  private readonly state = h("p", { role: "status", class: "hint" });
  private readonly charts = h("div", { class: "charts" });
  private readonly address = h("input", { type: "text", placeholder: "127.0.0.1:8012", autocomplete: "off", spellcheck: "false" });
  private readonly pause = h("button", { type: "button", onclick: () => this.toggle() }, "Pause the picture");
  private run: Run | undefined;
  private drawn: (Chart | ResourceGrid)[] = [];
  private signature = "";
  private paused = false;
  /** Counts openings: one that comes later overtakes one that still waits for the server. */
  private turn = 0;

  constructor() {
    this.view.window = 10;
    const watch = h(
      "form",
      {
        class: "row",
        onsubmit: (event) => {
          event.preventDefault();
          location.hash = link("live", { address: this.address.value.trim() });
        },
      },
      field("Address", this.address, "Of an RNIS server, or unix:/PATH of a proxy's control socket."),
      h("button", { type: "submit", class: "primary" }, "Watch"),
    );
    const shown = select(WINDOWS, "10", (value) => {
      this.view.window = value ? Number(value) : undefined;
      this.view.reset();
    });
    this.element.append(h("section", { class: "card" }, h("h2", {}, "What runs here"), this.list, watch), h("div", { class: "row" }, this.pause, field("Shown", shown)), this.state, this.charts);
  }

  async open(params: URLSearchParams): Promise<void> {
    this.turn += 1;
    const { turn } = this;
    this.leave();
    const address = params.get("address") ?? "";
    this.address.value = address;
    note("live", params);
    this.state.textContent = "";
    try {
      const sources = await ask<LiveSource[]>("GET", "live");
      if (turn !== this.turn) return;
      const item = (source: LiveSource) => h("li", {}, h("a", { href: link("live", { address: source.address }) }, source.address), ` ${source.what}`);
      replace(this.list, sources.length ? h("ul", {}, sources.map(item)) : h("p", {}, "Nothing answers at the usual addresses. Type the one that your command printed."));
      if (!address) return;
      const run = await Run.attach(address, (event) => this.hear(event));
      if (turn !== this.turn) {
        run.detach();
        return;
      }
      this.run = run;
      this.layout();
      this.tell();
    } catch (fault) {
      const said = fault instanceof Error ? fault.message : String(fault);
      this.state.textContent = said;
      announce(said, "error");
    }
  }

  destroy(): void {
    this.turn += 1;
    this.leave();
  }

  restyle(): void {
    for (const chart of this.drawn) chart.restyle();
  }

  private leave(): void {
    this.run?.detach();
    this.run = undefined;
    for (const chart of this.drawn) chart.destroy();
    this.drawn = [];
    this.signature = "";
    this.view.restart();
    replace(this.charts);
  }

  /** The picture stands still; its figures go on, and are there when it moves again. */
  private toggle(): void {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause the picture";
    if (this.paused) this.view.zoom(...this.view.range());
    else {
      this.view.reset();
      this.layout();
    }
  }

  private hear(event: RunEvent): void {
    if (!this.run) return;
    if (event === "rows") {
      const times = this.run.rowTimes();
      if (times.length) this.view.extend(times.at(-1)!);
      if (!this.paused) for (const chart of this.drawn) chart.update();
    }
    if (event === "about" && !this.paused) this.layout();
    this.tell();
  }

  private tell(): void {
    const { run } = this;
    if (!run) return;
    const { problem } = run.state;
    const said = run.gone ?? (problem ? `${problem}. It is asked again every second.` : `${run.session.about.name} at ${this.address.value}`);
    if (this.state.textContent !== said) this.state.textContent = said;
    this.state.className = run.gone || problem ? "fault" : "hint";
  }

  /** A chart for each quantity, with a line for each flow or user that has it. */
  private layout(): void {
    const { run } = this;
    if (!run) return;
    const { columns, grid, about } = run.session;
    const signature = JSON.stringify([columns, grid, about.cells]);
    if (signature === this.signature) return;
    this.signature = signature;
    for (const chart of this.drawn) chart.destroy();
    const kinds = new Map(columns.map(({ of, column }) => [`${of} ${column}`, { of, column }]));
    const charts = [...kinds.values()].map(({ of, column }) => {
      const names = columns.filter((one) => one.of === of && one.column === column).map(({ name }) => name);
      const states = statesOf(column, "");
      const options: ChartOptions = {
        title: `${titleOf(column)} of ${of}s`,
        unit: unitOf(column),
        traces: names.map((name, index) => ({ label: name, colour: index, times: run.rowTimes, values: () => run.values(of, name, column) })),
        ...(states ? { states } : {}),
      };
      return new Chart(options, this.view);
    });
    const grids = about.cells.flatMap((cell, number) =>
      [false, true].flatMap((uplink) => {
        const lanes = (grid?.lanes ?? []).map((lane, index) => ({ lane, index })).filter(({ lane }) => lane.uplink === uplink && about.users[lane.number]?.cell === number);
        if (!grid || lanes.length === 0) return [];
        const options = {
          title: `Who gets which share of the ${uplink ? "uplink" : "downlink"} of ${cell.name}`,
          prbs: cell.prbs,
          bin_s: grid.bin_s,
          times: run.binTimes,
          lanes: lanes.map(({ lane, index }) => ({ label: lane.user, values: () => run.lane(index) })),
        };
        return [new ResourceGrid(options, this.view)];
      }),
    );
    this.drawn = [...grids, ...charts];
    replace(this.charts, this.drawn.map(({ element }) => element));
  }
}

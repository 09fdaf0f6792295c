// The view of stored results: folders, runs, comparisons and sweeps.

import { announce, field, h, replace, select } from "./dom";
import { ask, decode, request, squeeze } from "./api";
import { Chart, Pairs, type Trace } from "./chart";
import { titleOf, unitOf } from "./columns";
import { link, note, type Shown } from "./route";
import { lessIsBetter, Scatter, type Point } from "./scatter";
import { kindOf } from "./states";
import { SortedTable, type TableColumn, type Value } from "./table";
import { TimeView } from "./view";
import type { Entry, Folder, RunAbout, StoredRun, StoredTable } from "./types";

const MOST_RUNS = 6;
const RUN_COLUMNS = ["scenario", "flow", "cc", "seed", "goodput_bit_s", "queueing_delay_mean_s", "queueing_delay_p95_s", "rtt_mean_s", "loss_rate"] as const;

/** A table of a stored run, in memory. */
interface Series {
  run: StoredRun;
  table: StoredTable;
  times: Float64Array;
  columns: Map<string, Float64Array>;
}

export class Results implements Shown {
  readonly element = h("div", { class: "results" });
  private charts: Chart[] = [];
  private readonly scatters: Scatter[] = [];
  private folder: Folder | undefined;
  private chosen: string[] = [];
  private readonly runsPlace = h("div", {});
  private turn = 0;

  async open(params: URLSearchParams): Promise<void> {
    this.turn += 1;
    const { turn } = this;
    this.clear();
    const path = params.get("path") ?? "";
    this.chosen = params.getAll("run").slice(0, MOST_RUNS);
    try {
      const folder = await ask<Folder>("GET", `results?path=${encodeURIComponent(path)}`);
      if (turn !== this.turn) return;
      this.folder = folder;
      this.draw(folder);
      if (this.chosen.length) await this.showRuns();
    } catch (fault) {
      replace(this.element, h("h2", {}, "Results"), h("p", { role: "alert" }, fault instanceof Error ? fault.message : String(fault)), h("a", { href: link("results") }, "All results"));
    }
  }

  destroy(): void {
    this.turn += 1;
    this.clear();
  }

  restyle(): void {
    for (const chart of this.charts) chart.restyle();
    for (const scatter of this.scatters) scatter.restyle();
  }

  private clear(): void {
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
    this.scatters.length = 0;
  }

  private draw(folder: Folder): void {
    const parts = folder.path.split("/").filter(Boolean);
    const crumbs = h(
      "nav",
      { class: "crumbs", "aria-label": "Folder" },
      h("a", { href: link("results") }, "results"),
      parts.map((part, index) => [" / ", h("a", { href: link("results", { path: parts.slice(0, index + 1).join("/") }), "aria-current": index === parts.length - 1 ? "page" : undefined }, part)]).flat(),
    );
    const entries = folder.entries.filter(({ kind }) => kind !== "run");
    replace(
      this.element,
      h("h2", {}, "Results"),
      crumbs,
      folder.is_cut ? h("p", { class: "hint" }, "There is more in this folder than is shown.") : null,
      entries.length ? h("ul", { class: "entries" }, entries.map((entry) => this.entry(entry))) : null,
      entries.length || folder.runs.length ? null : h("p", {}, "Nothing is here yet. `ranpace compare`, `run` and `sweep` leave their results in this folder, and so does “Keep” under Play."),
      folder.tables.map((table) => this.rowsOf(table.path, table.columns.map((name) => ({ name })), table.rows)),
      folder.runs.length ? this.runTable(folder.runs) : null,
      this.runsPlace,
    );
  }

  private entry({ name, path, kind, bytes }: Entry): HTMLElement {
    const file = `api/results/file?path=${encodeURIComponent(path)}`;
    const size = bytes === null ? "" : ` ${bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`}`;
    switch (kind) {
      case "folder":
        return h("li", { class: "folder" }, h("a", { href: link("results", { path }) }, `${name}/`));
      case "report":
        return h("li", {}, h("a", { href: file, target: "_blank", rel: "noopener" }, name), h("span", { class: "hint" }, " a report, in a new tab"));
      default:
        return h("li", {}, h("a", { href: file, download: name }, name), h("span", { class: "hint" }, size));
    }
  }

  // ---- figures of many runs ----

  private runTable(runs: readonly RunAbout[]): HTMLElement {
    const rows: Value[][] = [];
    const paths: string[] = [];
    for (const run of runs) {
      for (const flow of run.flows) {
        rows.push([run.scenario + (run.interrupted ? " (interrupted)" : ""), flow.name, flow.cc, run.seed, flow.goodput_bit_s, flow.queueing_delay_mean_s, flow.queueing_delay_p95_s, flow.rtt_mean_s, flow.loss_rate]);
        paths.push(run.path);
      }
    }
    const lead = (row: number) => {
      const box = h("input", {
        type: "checkbox",
        checked: this.chosen.includes(paths[row]!),
        "data-path": paths[row],
        "aria-label": `Show ${rows[row]![1]} under ${rows[row]![2]}, seed ${rows[row]![3]}, over time`,
        onchange: () => this.choose(paths[row]!, box.checked),
      });
      return box;
    };
    const columns = RUN_COLUMNS.map((name) => ({ name }));
    return this.rowsOf("Runs", columns, rows, lead);
  }

  private choose(path: string, chosen: boolean): void {
    this.chosen = this.chosen.filter((other) => other !== path);
    if (chosen) this.chosen.push(path);
    if (this.chosen.length > MOST_RUNS) {
      announce(`At most ${MOST_RUNS} runs are shown over time; the first one made room.`);
      this.chosen.shift();
    }
    for (const box of this.element.querySelectorAll<HTMLInputElement>("input[data-path]")) box.checked = this.chosen.includes(box.dataset["path"]!);
    const params = new URLSearchParams({ path: this.folder?.path ?? "" });
    for (const run of this.chosen) params.append("run", run);
    note("results", params);
    void this.showRuns();
  }

  /** A table of rows, and one of its figures against another. */
  private rowsOf(name: string, columns: readonly TableColumn[], rows: readonly (readonly Value[])[], lead?: (row: number) => HTMLElement): HTMLElement {
    const numeric = columns.map((column, index) => ({ ...column, index })).filter(({ name: column, index }) => !column.endsWith("_ci95") && rows.some((row) => typeof row[index] === "number"));
    const pick = (wanted: RegExp, other: RegExp) => (numeric.find((column) => wanted.test(column.name)) ?? numeric.find((column) => other.test(column.name)) ?? numeric[0])?.name ?? "";
    let [x, y] = [pick(/delay_p95/, /delay|rtt|completion/), pick(/goodput/, /utilisation|rate/)];
    const colouring = columns.findIndex((column) => column.name === "cc");
    const label = (row: number) => rows[row]!.filter((value) => typeof value === "string").join(", ");
    let shown: readonly number[] = [];
    const scatter = new Scatter((row) => {
      table.element.querySelectorAll<HTMLElement>("tr[data-row]").forEach((line) => line.classList.toggle("hot", line.dataset["row"] === String(row)));
    });
    this.scatters.push(scatter);
    const draw = () => {
      const [a, b] = [numeric.find((column) => column.name === x), numeric.find((column) => column.name === y)];
      if (!a || !b) return;
      const points = shown.flatMap((row): Point[] => {
        const [px, py] = [rows[row]![a.index], rows[row]![b.index]];
        if (typeof px !== "number" || typeof py !== "number") return [];
        return [{ row, x: px * unitOf(x).factor, y: py * unitOf(y).factor, group: colouring < 0 ? "all" : String(rows[row]![colouring] ?? "–"), label: label(row) }];
      });
      scatter.show(points, x, y);
    };
    const table = new SortedTable(columns, rows, {
      name,
      ...(lead ? { lead } : {}),
      onfilter: (left) => {
        shown = left;
        draw();
      },
      onpoint: (row) => scatter.highlight(row),
    });
    const axes = numeric.map((column) => [column.name, `${titleOf(column.name)} (${lessIsBetter(column.name) ? "less" : "more"} is better)`] as const);
    return h(
      "section",
      { class: "card figures-card", "aria-label": name },
      h("h3", {}, name),
      h("div", {}, lead ? h("p", { class: "hint" }, "Choose runs to see them over time, below.") : null, table.element),
      numeric.length >= 2
        ? h(
            "details",
            { open: true },
            h("summary", {}, "One figure against another"),
            h(
              "div",
              { class: "row" },
              field("Across", select(axes, x, (value) => {
                x = value;
                draw();
              })),
              field("Up", select(axes, y, (value) => {
                y = value;
                draw();
              })),
            ),
            scatter.element,
          )
        : null,
    );
  }

  // ---- runs over time ----

  private async showRuns(): Promise<void> {
    this.turn += 1;
    const { turn } = this;
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
    replace(this.runsPlace);
    if (this.chosen.length === 0) return;
    try {
      const runs = await Promise.all(this.chosen.map((path) => ask<StoredRun>("GET", `results/run?path=${encodeURIComponent(path)}`)));
      const load = (pattern: RegExp) => Promise.all(runs.flatMap((run) => run.tables.filter(({ name }) => pattern.test(name)).map((table) => series(run, table))));
      const [flows, links, users] = await Promise.all([load(/^flow-\d+$/), load(/^link-\d+$/), load(/^user-\d+$/)]);
      const distributions = await Promise.all(runs.map((run) => distribution(run)));
      if (turn !== this.turn) return;
      this.drawRuns(runs, flows, links, users, distributions);
    } catch (fault) {
      if (turn === this.turn) replace(this.runsPlace, h("p", { role: "alert" }, fault instanceof Error ? fault.message : String(fault)));
    }
  }

  private drawRuns(runs: readonly StoredRun[], flows: readonly Series[], links: readonly Series[], users: readonly Series[], distributions: readonly Curve[][]): void {
    const view = new TimeView();
    const pairs = new Pairs();
    const many = runs.length > 1;
    const named = (one: Series) => {
      const flow = one.run.about.flows.find(({ name }) => name === one.table.of);
      const what = flow ? `${one.table.of} (${flow.cc})` : one.table.of;
      return many ? `${what}, seed ${one.run.about.seed}` : what;
    };
    const traces = (of: readonly Series[], column: string): Trace[] =>
      of.flatMap((one, index) => {
        const values = one.columns.get(column);
        return values?.some((value) => !Number.isNaN(value)) ? [{ label: named(one), colour: index, times: () => one.times, values: () => values }] : [];
      });
    // The capacity of what carried most in the first run: its bottleneck, or the way to it.
    const carried = (one: Series) => (one.columns.get("departed_bit_s") ?? new Float64Array()).reduce((sum, value) => sum + (value || 0), 0);
    const bounding = links.filter((one) => one.run === runs[0] && one.columns.get("capacity_bit_s")?.some((value) => value > 0)).sort((a, b) => carried(b) - carried(a));
    const capacities = traces(bounding.slice(0, 1), "capacity_bit_s").map((trace): Trace => ({ ...trace, label: `capacity of ${trace.label}`, colour: "reference", limit: true }));
    const chart = (title: string, column: string, of: readonly Series[], extra: readonly Trace[] = [], unit = unitOf(column)) => {
      const own = traces(of, column);
      if (own.length === 0) return;
      this.charts.push(new Chart({ title, unit, boundByLimits: extra.length > 0, traces: [...own, ...extra], ...(column.endsWith("_db") ? { fromZero: false } : {}) }, view, pairs));
    };
    chart("Rate", "goodput_bit_s", flows, capacities);
    chart("Queueing delay", "queueing_delay_mean_s", flows);
    chart("Round-trip time", "srtt_s", flows);
    chart("Congestion window", "cwnd_bytes", flows);
    chart("Pacing rate", "pacing_bit_s", flows);
    chart("Queue of links", "queued_bytes", links);
    chart("CQI", "cqi", users);
    chart("MCS", "mcs", users);
    chart("SINR", "sinr_db", users);
    chart("PRBs", "prbs", users);
    const states = new Set(flows.flatMap(({ columns }) => [...columns.keys()].filter((column) => /^(state|receiver|proxy)_/.test(column))));
    const controls = runs.flatMap(({ about }) => about.flows.map(({ cc }) => cc)).join(" ");
    for (const column of states) chart(`${column.startsWith("state_") ? "State: " : ""}${titleOf(column)}`, column, flows, [], kindOf(column, controls).unit);
    for (const one of [...flows, ...links, ...users]) if (one.times.length) view.extend(one.times.at(-1)!);
    const curves = this.curves(distributions.flat());
    replace(
      this.runsPlace,
      h("h2", {}, many ? `${runs.length} runs` : `Run of ${runs[0]!.about.scenario}, seed ${runs[0]!.about.seed}`),
      runs.map((run) => this.about(run)),
      h("div", { class: "charts" }, this.charts.map(({ element }) => element)),
      curves.length ? [h("h2", {}, "Distributions"), h("div", { class: "charts" }, curves.map(({ element }) => element))] : null,
    );
    this.charts.push(...curves);
    for (const one of this.charts) one.update();
    this.runsPlace.querySelector("h2")?.scrollIntoView({ block: "start" });
  }

  /** Distribution functions: a chart per quantity. */
  private curves(all: readonly Curve[]): Chart[] {
    return [...new Set(all.map(({ quantity }) => quantity))].map((quantity) => {
      const view = new TimeView();
      const own = all.filter((curve) => curve.quantity === quantity);
      for (const curve of own) view.extend(curve.values.at(-1) ?? 0);
      return new Chart(
        {
          title: quantity === "rtt" ? "RTT: share of samples at or below" : "Queueing delay: share of packets at or below",
          x: quantity === "rtt" ? "RTT, ms" : "queueing delay, ms",
          unit: { name: "%", factor: 100 },
          traces: own.map((curve, index) => ({ label: curve.label, colour: index, times: () => curve.values, values: () => curve.shares })),
        },
        view,
      );
    });
  }

  private about(run: StoredRun): HTMLElement {
    const { path } = run.about;
    const file = (table: StoredTable, format: string) => `api/results/series?path=${encodeURIComponent(path)}&table=${encodeURIComponent(table.name)}&format=${format}`;
    const play = h("button", {
      type: "button",
      onclick: () => void squeeze(JSON.stringify({ plan: { text: run.text } })).then((s) => (location.hash = link("play", { s }))),
    });
    play.textContent = "Play this scenario";
    return h(
      "details",
      { class: "card" },
      h("summary", {}, `${run.about.scenario}, seed ${run.about.seed}: ${run.about.flows.map(({ cc }) => cc).join(", ")}; ${run.end_s} s`),
      h("div", { class: "actions" }, play, h("a", { class: "button", href: `data:application/toml;charset=utf-8,${encodeURIComponent(run.text)}`, download: `${run.about.scenario}.toml` }, "Scenario")),
      h("table", { class: "figures" }, h("tbody", {}, run.tables.map((table) =>
        h("tr", {}, h("td", {}, table.name), h("td", {}, table.of), h("td", { class: "number" }, `${table.rows} rows`), h("td", {}, h("a", { href: file(table, "csv"), download: `${table.name}.csv` }, "CSV")), h("td", {}, h("a", { href: file(table, "parquet"), download: `${table.name}.parquet` }, "Parquet"))),
      ))),
      h("pre", { tabindex: 0, "aria-label": "Scenario" }, run.text),
    );
  }
}

async function series(run: StoredRun, table: StoredTable): Promise<Series> {
  const answer = await request("GET", `results/series?path=${encodeURIComponent(run.about.path)}&table=${encodeURIComponent(table.name)}&format=columns`);
  const frame = decode(await answer.arrayBuffer());
  const names = table.columns.filter((name) => name !== "time_s");
  if (names.length !== frame.columns.length) throw new Error(`${table.name} of ${run.about.path} has ${frame.columns.length} columns, not the ${names.length} that its description has`);
  return { run, table, times: frame.times, columns: new Map(names.map((name, index) => [name, Float64Array.from(frame.columns[index]!)])) };
}

/** A distribution function of a flow; values in ms. */
interface Curve {
  label: string;
  quantity: string;
  values: Float64Array;
  shares: Float64Array;
}

async function distribution(run: StoredRun): Promise<Curve[]> {
  if (!run.tables.some(({ name }) => name === "distributions")) return [];
  const answer = await request("GET", `results/series?path=${encodeURIComponent(run.about.path)}&table=distributions&format=csv`);
  const [header = "", ...lines] = (await answer.text()).trim().split(/\r?\n/);
  const place = new Map(header.split(",").map((name, index) => [name, index]));
  const curves = new Map<string, { label: string; quantity: string; points: [number, number][] }>();
  for (const line of lines) {
    const cells = line.split(",");
    const cell = (name: string) => cells[place.get(name) ?? -1] ?? "";
    const flow = run.about.flows[Number(cell("index"))];
    if (cell("of") !== "flow" || !flow) continue;
    const key = `${cell("index")} ${cell("quantity")}`;
    const curve = curves.get(key) ?? { label: `${flow.name} (${flow.cc}), seed ${run.about.seed}`, quantity: cell("quantity"), points: [] };
    curves.set(key, curve);
    curve.points.push([Number(cell("value_s")) * 1e3, Number(cell("share"))]);
  }
  return [...curves.values()].map(({ label, quantity, points }) => ({
    label,
    quantity,
    values: Float64Array.from(points, ([value]) => value),
    shares: Float64Array.from(points, ([, share]) => share),
  }));
}

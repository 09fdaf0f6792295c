// The figures of two runs beside each other, and their ratios.

import { h, replace } from "./dom";
import { indexAt, number, unitOf } from "./columns";
import type { Run } from "./run";
import type { TimeView } from "./view";

/** Time between two updates: figures that change faster cannot be read. */
const REST_MS = 250;

interface Figure {
  title: string;
  column: string;
  of: (values: Float64Array) => number;
}

/** The mean of those that are there. */
function mean(values: Float64Array): number {
  let [sum, count] = [0, 0];
  for (const value of values) if (!Number.isNaN(value)) [sum, count] = [sum + value, count + 1];
  return count === 0 ? NaN : sum / count;
}

function most(values: Float64Array): number {
  let largest = NaN;
  for (const value of values) if (!(value <= largest) && !Number.isNaN(value)) largest = value;
  return largest;
}

const FIGURES: readonly Figure[] = [
  { title: "Goodput, mean", column: "goodput_bit_s", of: mean },
  { title: "Queueing delay, mean of the rows", column: "queueing_delay_mean_s", of: mean },
  { title: "Queueing delay, largest", column: "queueing_delay_max_s", of: most },
  { title: "Round-trip time, mean", column: "srtt_s", of: mean },
  { title: "Congestion window, mean", column: "cwnd_bytes", of: mean },
  // A count since the beginning.
  { title: "Packets sent again", column: "retransmitted_packets", of: (values) => (values.at(-1) ?? NaN) - (values[0] ?? NaN) },
];

/** A figure of a flow over the rows from `from` to `to`. */
export function figure(times: Float64Array, values: Float64Array, from: number, to: number, of: (values: Float64Array) => number): number {
  return of(values.subarray(indexAt(times, from) + 1, indexAt(times, to) + 1));
}

export class Differences {
  private readonly body = h("tbody", {});
  private readonly range = h("p", { class: "hint" });
  readonly element: HTMLElement;
  private waiting: number | undefined;
  private readonly stop: () => void;

  constructor(
    private readonly runs: () => readonly (Run | undefined)[],
    titles: readonly string[],
    private readonly view: TimeView,
  ) {
    const head = ["Figure", ...titles, "B / A"].map((text) => h("th", { scope: "col" }, text));
    this.element = h(
      "section",
      { class: "card differences", "aria-label": "Differences" },
      h("h2", {}, "Differences"),
      this.range,
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of both runs" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, head)), this.body)),
    );
    this.stop = view.listen((what) => {
      if (what === "range") this.update();
    });
  }

  /** Shows the figures soon. */
  update(): void {
    this.waiting ??= window.setTimeout(() => {
      this.waiting = undefined;
      this.draw();
    }, REST_MS);
  }

  destroy(): void {
    this.stop();
    clearTimeout(this.waiting);
    this.element.remove();
  }

  private draw(): void {
    const [a, b] = this.runs();
    if (!a || !b) return;
    const [from, shown] = this.view.range();
    // No further than both have come.
    const to = Math.min(shown, ...[a, b].map((run) => run.rowTimes().at(-1) ?? 0));
    this.range.textContent = `From ${number(from)} to ${number(to)} s, which the charts show: zoom in to compare a part.`;
    const pairs = a.session.about.flows.flatMap((flow, index) => {
      const other = b.session.about.flows[index];
      return other ? [[flow.name, other.name] as const] : [];
    });
    replace(
      this.body,
      pairs.flatMap(([own, other]) =>
        FIGURES.map(({ title, column, of }) => {
          const { name, factor } = unitOf(column);
          const [first, second] = ([[a, own], [b, other]] as const).map(([run, flow]) => figure(run.rowTimes(), run.values("flow", flow, column), from, to, of) * factor) as [number, number];
          const flow = own === other ? own : `${own} and ${other}`;
          const cells = [first, second, first > 0 ? second / first : NaN].map((value) => h("td", { class: "number" }, number(value)));
          return h("tr", {}, h("th", { scope: "row" }, `${title}${name && `, ${name}`}${pairs.length > 1 ? ` (${flow})` : ""}`), cells);
        }),
      ),
    );
  }
}

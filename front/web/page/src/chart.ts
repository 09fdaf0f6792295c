// A chart over time: uPlot draws it, and it shares its zoom and its cursor with the others of its view.

import uPlot from "uplot";
import { h, announce } from "./dom";
import { decimate, type Drawn } from "./decimate";
import { indexAt, number, type Unit } from "./columns";
import { colour, dash, grey, themed } from "./palette";
import { paint } from "./paint";
import { draw, saveCsv, savePng, saveSvg } from "./picture";
import type { TimeView } from "./view";

/** One line. */
export interface Trace {
  label: string;
  /** The times and values of this moment; NaN is a gap. */
  times: () => Float64Array;
  values: () => Float64Array;
  /** Its place among the colours; "reference" is grey. */
  colour: number | "reference";
  /** Dashed: a limit of what is drawn in the same colour. */
  limit?: boolean;
}

export interface ChartOptions {
  title: string;
  /** What it shows and how to read it, for those who ask. */
  about?: string;
  unit: Unit;
  /** What is across, with its unit; the time unless it is said. */
  x?: string;
  traces: readonly Trace[];
  /** Values that are states are drawn as steps, with these names. */
  states?: readonly string[];
  /** Whether limits bound the axis: short peaks beyond them would flatten all else. */
  boundByLimits?: boolean;
  /** Whether the axis begins at zero; it does unless this is false. */
  fromZero?: boolean;
}

/** Charts of the same title share their scale: what is side by side can be compared. */
export class Pairs {
  private readonly ranges = new Map<string, Map<Chart, readonly [number, number]>>();

  /** The common range after a chart's own has changed; the others are drawn again if it did. */
  join(chart: Chart, own: readonly [number, number]): [number, number] {
    const key = `${chart.options.title}, ${chart.options.unit.name}`;
    const ranges = this.ranges.get(key) ?? new Map<Chart, readonly [number, number]>();
    this.ranges.set(key, ranges);
    const before = span(ranges.values());
    ranges.set(chart, own);
    const after = span(ranges.values());
    if (before[0] !== after[0] || before[1] !== after[1]) for (const other of ranges.keys()) if (other !== chart) other.update();
    return after;
  }

  forget(charts: readonly unknown[]): void {
    for (const ranges of this.ranges.values()) for (const chart of charts) ranges.delete(chart as Chart);
  }
}

function span(ranges: Iterable<readonly [number, number]>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const [from, to] of ranges) [low, high] = [Math.min(low, from), Math.max(high, to)];
  return [low, high];
}

export class Chart {
  readonly element: HTMLElement;
  private readonly host: HTMLElement;
  private readonly legend: HTMLElement;
  private plot: uPlot | undefined;
  private readonly hidden = new Set<number>();
  private yRange: [number, number] = [0, 1];
  private seen = false;
  private marks: readonly number[] = [];
  private readonly readings: HTMLElement[] = [];
  private readonly stop: () => void;
  private readonly observers: { disconnect: () => void }[] = [];
  private readonly drawAll = () => this.redraw();
  private readonly drawCursor = () => this.showCursor();

  constructor(
    readonly options: ChartOptions,
    private readonly view: TimeView,
    private readonly pairs?: Pairs,
  ) {
    const { title, unit } = options;
    this.host = h("div", {
      class: "plot",
      tabindex: 0,
      role: "slider",
      "aria-label": `${title}${unit.name && `, ${unit.name}`} ${options.x ? `over ${options.x}` : "over time"}. Arrow keys move the cursor, plus and minus zoom, Escape shows all.`,
      "aria-valuemin": 0,
      "aria-valuemax": 0,
      "aria-valuenow": 0,
      onkeydown: (event) => {
        if (!event.ctrlKey && !event.metaKey && view.key(event)) event.preventDefault();
      },
      onmouseleave: () => view.point(undefined),
      ondblclick: () => view.reset(),
    });
    this.legend = h("div", { class: "legend" });
    options.traces.forEach((trace, index) => this.legend.append(this.key(trace, index)));
    this.element = h(
      "section",
      { class: "chart", "aria-label": title },
      h("header", {}, h("h3", {}, title, unit.name ? h("span", { class: "unit" }, ` ${unit.name}`) : null), options.about ? h("p", { class: "hint" }, options.about) : null, this.saveMenu()),
      this.legend,
      this.host,
    );
    this.stop = view.listen((what) => (what === "cursor" ? paint(this.drawCursor) : this.update()));
    const seen = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)!.isIntersecting;
      this.update();
    });
    seen.observe(this.host);
    const sized = new ResizeObserver(() => this.update());
    sized.observe(this.host);
    this.observers.push(seen, sized);
  }

  /** Draws soon: the data, the range, the size or the theme have changed. Charts out of sight wait until they are seen. */
  update(): void {
    if (this.seen) paint(this.drawAll);
  }

  /** The theme has changed: colours are read again. */
  restyle(): void {
    this.plot?.destroy();
    this.plot = undefined;
    this.legend.replaceChildren();
    this.readings.length = 0;
    this.options.traces.forEach((trace, index) => this.legend.append(this.key(trace, index)));
    this.update();
  }

  /** Times of changes, which are drawn as numbered lines. */
  mark(times: readonly number[]): void {
    this.marks = times;
  }

  destroy(): void {
    this.stop();
    for (const observer of this.observers) observer.disconnect();
    this.plot?.destroy();
    this.element.remove();
  }

  private get across(): string {
    return this.options.x ?? "time, s";
  }

  private stroke(index: number): string {
    const place = this.options.traces[index]!.colour;
    return place === "reference" ? grey() : colour(place);
  }

  private dash(index: number): readonly number[] {
    const { colour: place, limit } = this.options.traces[index]!;
    return place === "reference" || limit ? [4, 3] : dash(place);
  }

  private key(trace: Trace, index: number): HTMLElement {
    const reading = h("output", {});
    this.readings.push(reading);
    const swatch = h("span", { class: this.dash(index).length ? "swatch dashed" : "swatch", "aria-hidden": "true" });
    swatch.style.setProperty("--colour", this.stroke(index));
    const button = h(
      "button",
      {
        type: "button",
        "aria-pressed": String(!this.hidden.has(index)),
        title: "Show or hide",
        onclick: () => {
          if (!this.hidden.delete(index)) this.hidden.add(index);
          button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
          this.update();
        },
      },
      swatch,
      h("span", {}, trace.label),
      reading,
    );
    return button;
  }

  private saveMenu(): HTMLElement {
    const name = this.options.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    const item = (text: string, save: () => unknown) =>
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            menu.open = false;
            void Promise.resolve(save()).catch((fault: unknown) => announce(String(fault), "error"));
          },
        },
        text,
      );
    const menu = h(
      "details",
      {
        class: "menu",
        onfocusout: (event: FocusEvent) => {
          if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
        },
      },
      h("summary", { "aria-label": `Save “${this.options.title}”`, title: "Save" }, "⤓"),
      h(
        "div",
        {},
        item("PNG", () => savePng(name, this.picture())),
        item("SVG", () => saveSvg(name, this.picture())),
        item("CSV", () => this.saveCsv(name)),
      ),
    );
    return menu;
  }

  private visible(): number[] {
    return this.options.traces.map((_, index) => index).filter((index) => !this.hidden.has(index));
  }

  private redraw(): void {
    const width = this.host.clientWidth;
    if (width < 10 || !this.host.isConnected) return;
    const height = this.host.clientHeight;
    this.plot ??= this.create(width, height);
    const plot = this.plot;
    const [from, to] = this.view.range();
    const data = this.drawn(from, to, Math.max(50, Math.round(plot.bbox.width / uPlot.pxRatio)));
    const own = this.fit(data);
    this.yRange = this.pairs?.join(this, own) ?? own;
    plot.batch(() => {
      if (plot.width !== width || plot.height !== height) plot.setSize({ width, height });
      this.options.traces.forEach((_, index) => {
        const show = !this.hidden.has(index);
        if (plot.series[index + 1]!.show !== show) plot.setSeries(index + 1, { show });
      });
      plot.setData(data, false);
      plot.setScale("x", { min: from, max: to });
      plot.setScale("y", { min: this.yRange[0], max: this.yRange[1] });
    });
    this.showCursor();
  }

  /** All traces on common times: as they are where all share theirs, joined otherwise. */
  private drawn(from: number, to: number, pixels: number): Drawn {
    const { traces, unit } = this.options;
    const groups = new Map<ArrayBufferLike, { times: Float64Array; members: number[] }>();
    traces.forEach((trace, index) => {
      const times = trace.times();
      const group = groups.get(times.buffer) ?? { times, members: [] };
      group.members.push(index);
      groups.set(times.buffer, group);
    });
    const tables = [...groups.values()].map(({ times, members }) => ({
      members,
      table: decimate(times, members.map((index) => traces[index]!.values().subarray(0, times.length)), members.map(() => unit.factor), from, to, pixels),
    }));
    if (tables.length === 1) return tables[0]!.table;
    const joined = uPlot.join(tables.map(({ table }) => table)) as Drawn;
    const order = tables.flatMap(({ members }) => members);
    return [joined[0], ...traces.map((_, index) => joined[order.indexOf(index) + 1] as (number | null)[])];
  }

  private fit(data: Drawn): [number, number] {
    if (this.options.states) return [-0.5, this.options.states.length - 0.5];
    let [low, high, limit] = [Infinity, -Infinity, -Infinity];
    for (const index of this.visible()) {
      const isLimit = this.options.traces[index]!.limit;
      for (const value of data[index + 1] as (number | null | undefined)[]) {
        if (value === null || value === undefined) continue;
        if (value < low) low = value;
        if (value > high) high = value;
        if (isLimit && value > limit) limit = value;
      }
    }
    if (low > high) return [0, 1];
    if (this.options.boundByLimits && limit > 0) high = Math.min(high, 1.3 * limit);
    if (this.options.fromZero === false) {
      const margin = (high - low) * 0.05 || 1;
      return [low - margin, high + margin];
    }
    // Negative values are shown, too.
    return [Math.min(0, low * 1.05), high > 0 ? high * 1.05 : 1];
  }

  private create(width: number, height: number): uPlot {
    const { traces, states } = this.options;
    const ink = themed("ink-soft");
    const axis = { stroke: ink, font: "12px system-ui, sans-serif", grid: { stroke: themed("grid"), width: 1 }, ticks: { stroke: themed("grid"), width: 1, size: 4 } };
    const steps = uPlot.paths.stepped!({ align: -1 });
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        scales: { x: { time: false, auto: false }, y: { auto: false } },
        axes: [
          { ...axis, size: 38, label: this.across, labelSize: 14, labelGap: 0, labelFont: "12px system-ui, sans-serif", values: (_, splits) => splits.map(number) },
          {
            ...axis,
            size: states ? 96 : 54,
            ...(states ? { splits: () => states.map((_, index) => index), values: () => [...states] } : { values: (_: uPlot, splits: number[]) => splits.map(number) }),
          },
        ],
        series: [
          {},
          ...traces.map((trace, index) => ({
            label: trace.label,
            stroke: this.stroke(index),
            width: 1.5,
            dash: [...this.dash(index)],
            points: { show: false },
            ...(states ? { paths: steps } : {}),
          })),
        ],
        hooks: {
          drawAxes: [(self) => this.drawMarks(self)],
          setSelect: [
            (self) => {
              const { left, width: chosen } = self.select;
              if (chosen < 4) return;
              this.view.zoom(self.posToVal(left, "x"), self.posToVal(left + chosen, "x"));
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      [[], ...traces.map(() => [])],
      this.host,
    );
    plot.over.addEventListener("mousemove", (event) => this.view.point(plot.posToVal(event.offsetX, "x")));
    return plot;
  }

  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const [from, to] = this.view.range();
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = themed("ink-soft");
    ctx.lineWidth = uPlot.pxRatio;
    ctx.font = `${10 * uPlot.pxRatio}px system-ui, sans-serif`;
    ctx.setLineDash([3 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
    this.marks.forEach((time, index) => {
      if (time < from || time > to) return;
      const x = plot.valToPos(time, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(String(index + 1), x + 3 * uPlot.pxRatio, bbox.top + 10 * uPlot.pxRatio);
    });
    ctx.restore();
  }

  private showCursor(): void {
    const { view, plot, options } = this;
    if (!plot || !this.host.isConnected) return;
    const [from, to] = view.range();
    const at = view.cursor;
    const shown = at !== undefined && at >= from && at <= to;
    plot.setCursor({ left: shown ? plot.valToPos(at, "x") : -10, top: 0 }, false);
    const spoken = options.traces.map((trace, index) => {
      const times = trace.times();
      const place = at === undefined ? times.length - 1 : indexAt(times, at);
      const value = place < 0 ? NaN : trace.values()[place]! * options.unit.factor;
      const text = options.states ? (options.states[value] ?? "–") : number(value);
      this.readings[index]!.textContent = text;
      return `${trace.label} ${text}`;
    });
    const time = number(at ?? to);
    this.host.setAttribute("aria-valuemax", String(to));
    this.host.setAttribute("aria-valuenow", time);
    this.host.setAttribute("aria-valuetext", `${this.across} ${time}: ${spoken.join(", ")}`);
  }

  private picture(): SVGSVGElement {
    const { title, unit, traces } = this.options;
    const range = this.view.range();
    const data = this.drawn(...range, 800);
    const visible = this.visible();
    return draw({
      title,
      x: this.across,
      y: unit.name || title,
      xRange: range,
      yRange: this.fit(data),
      lines: visible.map((index) => {
        const place = traces[index]!.colour;
        const stroke = this.stroke(index);
        return {
          label: traces[index]!.label,
          // The picture is light whatever the page is.
          colour: place === "reference" ? "#767676" : stroke === "#f2f2f2" ? "#000000" : stroke,
          dash: this.dash(index),
          points: data[0].flatMap((time, point) => {
            const value = (data[index + 1] as (number | null | undefined)[])[point];
            return value === undefined ? [] : [[time, value] as const];
          }),
        };
      }),
    });
  }

  /** The values that are shown, all of them, in the unit of the chart. */
  private saveCsv(name: string): void {
    const { traces, unit } = this.options;
    const [from, to] = this.view.range();
    function* rows(): Generator<(number | string)[]> {
      for (const trace of traces) {
        const [times, values] = [trace.times(), trace.values()];
        for (let index = Math.max(0, indexAt(times, from)); index < times.length && times[index]! <= to; index += 1) {
          yield [trace.label, times[index]!, values[index]! * unit.factor];
        }
      }
    }
    saveCsv(name, ["series", this.across, unit.name ? `value, ${unit.name}` : "value"], rows());
  }
}

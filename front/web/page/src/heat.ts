// The resource grid over time: who got which share of the PRBs.

import { h, download, announce } from "./dom";
import { indexAt, number, ticks } from "./columns";
import { colour, heat, themed } from "./palette";
import { paint } from "./paint";
import type { TimeView } from "./view";

export interface Lane {
  label: string;
  /** Mean PRBs per slot in each bin. */
  values: () => Float64Array;
}

export interface GridOptions {
  title: string;
  /** PRBs of the cell. */
  prbs: number;
  bin_s: number;
  /** Begin of each bin. */
  times: () => Float64Array;
  lanes: readonly Lane[];
}

const [LEFT, BOTTOM, TOP] = [96, 36, 6];
const MOST_STACKED = 6;

export class ResourceGrid {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", {});
  private readonly host: HTMLElement;
  private readonly legend = h("div", { class: "legend" });
  private readonly readings: HTMLElement[] = [];
  private stacked: boolean;
  private seen = false;
  private readonly stop: () => void;
  private readonly observers: { disconnect: () => void }[] = [];
  private readonly drawAll = () => this.redraw();
  private readonly drawCursor = () => this.showCursor();
  private readonly cursorLine = h("div", { class: "cursor-line", hidden: true });

  constructor(
    readonly options: GridOptions,
    private readonly view: TimeView,
  ) {
    this.stacked = options.lanes.length <= MOST_STACKED;
    this.host = h(
      "div",
      {
        class: "plot grid",
        tabindex: 0,
        role: "slider",
        "aria-label": `${options.title}, PRBs over time. Arrow keys move the cursor, plus and minus zoom, Escape shows all.`,
        "aria-valuemin": 0,
        "aria-valuemax": 0,
        "aria-valuenow": 0,
        onkeydown: (event) => {
          if (!event.ctrlKey && !event.metaKey && view.key(event)) event.preventDefault();
        },
        onmousemove: (event) => this.pointAt(event),
        onmouseleave: () => view.point(undefined),
        ondblclick: () => view.reset(),
      },
      this.canvas,
      this.cursorLine,
    );
    const form = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          this.stacked = !this.stacked;
          form.textContent = this.stacked ? "Show a row for each user" : "Show shares of the band";
          this.makeLegend();
          this.update();
        },
      },
      this.stacked ? "Show a row for each user" : "Show shares of the band",
    );
    const save = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () =>
          this.canvas.toBlob((bytes) => {
            if (bytes) download("resource-grid.png", bytes, "image/png");
            else announce("This browser could not encode the picture as PNG.", "error");
          }),
      },
      "PNG",
    );
    this.element = h(
      "section",
      { class: "chart", "aria-label": options.title },
      h("header", {}, h("h3", {}, options.title, h("span", { class: "unit" }, ` of ${options.prbs} PRB`)), h("span", { class: "tools" }, form, save)),
      this.legend,
      this.host,
    );
    this.makeLegend();
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

  update(): void {
    if (this.seen) paint(this.drawAll);
  }

  restyle(): void {
    this.makeLegend();
    this.update();
  }

  destroy(): void {
    this.stop();
    for (const observer of this.observers) observer.disconnect();
    this.element.remove();
  }

  private makeLegend(): void {
    this.readings.length = 0;
    const keys = this.options.lanes.map(({ label }, index) => {
      const reading = h("output", {});
      this.readings.push(reading);
      const swatch = h("span", { class: "swatch block", "aria-hidden": "true", hidden: !this.stacked });
      swatch.style.setProperty("--colour", colour(index));
      return h("span", { class: "key" }, swatch, label, reading);
    });
    const free = h("output", {});
    this.readings.push(free);
    const swatch = h("span", { class: "swatch block", "aria-hidden": "true", hidden: !this.stacked });
    swatch.style.setProperty("--colour", themed("grid"));
    keys.push(h("span", { class: "key" }, swatch, "free", free));
    this.legend.replaceChildren(...keys);
    if (!this.stacked) {
      const bar = h("canvas", { width: 100, height: 10, class: "colour-bar", role: "img", "aria-label": `Colours from 0 to ${this.options.prbs} PRB: dark blue, grey, yellow` });
      const context = bar.getContext("2d")!;
      for (let x = 0; x < 100; x += 1) {
        context.fillStyle = `rgb(${heat(x / 99).join(" ")})`;
        context.fillRect(x, 0, 1, 10);
      }
      this.legend.append(h("span", { class: "key" }, "0", bar, `${this.options.prbs} PRB`));
    }
    this.showCursor();
  }

  private pointAt(event: MouseEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.view.range();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT);
    this.view.point(share < 0 ? undefined : from + share * (to - from));
  }

  /** The mean of each lane over the bins of each pixel. */
  private shares(from: number, to: number, pixels: number): Float64Array[] {
    const { lanes, bin_s } = this.options;
    const times = this.options.times();
    const values = lanes.map((lane) => lane.values());
    const shares = lanes.map(() => new Float64Array(pixels).fill(NaN));
    const step = (to - from) / pixels;
    for (let pixel = 0; pixel < pixels; pixel += 1) {
      const start = from + pixel * step;
      const first = indexAt(times, start);
      // What runs elsewhere is read at times that vary by a little, which leaves no gap.
      const isFollowed = times[first + 1]! - times[first]! < 2 * bin_s;
      if (first < 0 || (!isFollowed && start > times[first]! + bin_s * (1 + 1e-6))) continue;
      const last = Math.max(first, indexAt(times, start + step - 1e-9));
      for (let lane = 0; lane < lanes.length; lane += 1) {
        let sum = 0;
        for (let index = first; index <= last; index += 1) sum += values[lane]![index] || 0;
        shares[lane]![pixel] = sum / (last - first + 1);
      }
    }
    return shares;
  }

  private redraw(): void {
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    if (width < LEFT + 10) return;
    const ratio = window.devicePixelRatio || 1;
    const { canvas } = this;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    // Opaque, because the picture is also saved.
    context.fillStyle = themed("card");
    context.fillRect(0, 0, width, height);
    const [from, to] = this.view.range();
    const [plotWidth, plotHeight] = [width - LEFT, height - BOTTOM - TOP];
    const shares = this.shares(from, to, plotWidth);
    if (this.stacked) this.drawStack(context, shares, plotHeight);
    else this.drawRows(context, shares, plotHeight);
    context.fillStyle = themed("ink-soft");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    for (const mark of ticks(from, to, Math.max(2, plotWidth / 90))) {
      const x = LEFT + ((mark - from) / (to - from)) * plotWidth;
      if (x < width - 8) context.fillText(number(mark), x, height - BOTTOM + 15);
    }
    context.fillText("time, s", LEFT + plotWidth / 2, height - 4);
    this.showCursor();
  }

  private drawStack(context: CanvasRenderingContext2D, shares: Float64Array[], height: number): void {
    const { prbs, lanes } = this.options;
    const colours = lanes.map((_, index) => colour(index));
    for (let pixel = 0; pixel < (shares[0]?.length ?? 0); pixel += 1) {
      if (Number.isNaN(shares[0]![pixel])) continue;
      context.fillStyle = themed("grid");
      context.fillRect(LEFT + pixel, TOP, 1, height);
    }
    for (let pixel = 0; pixel < (shares[0]?.length ?? 0); pixel += 1) {
      let base = TOP + height;
      for (let lane = 0; lane < shares.length; lane += 1) {
        const part = ((shares[lane]![pixel] || 0) / prbs) * height;
        if (part === 0) continue;
        context.fillStyle = colours[lane]!;
        context.fillRect(LEFT + pixel, base - part, 1, part);
        base -= part;
      }
    }
    context.fillStyle = themed("ink-soft");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    for (const mark of ticks(0, prbs, 4)) context.fillText(`${number(mark)} PRB`, LEFT - 8, Math.max(TOP + 9, TOP + height - (mark / prbs) * height + 4));
  }

  private drawRows(context: CanvasRenderingContext2D, shares: Float64Array[], height: number): void {
    const { prbs, lanes } = this.options;
    const row = height / lanes.length;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    shares.forEach((lane, index) => {
      const top = TOP + index * row;
      lane.forEach((value, pixel) => {
        if (Number.isNaN(value)) return;
        context.fillStyle = `rgb(${heat(value / prbs).join(" ")})`;
        context.fillRect(LEFT + pixel, top, 1, Math.max(1, row - 1));
      });
      context.fillStyle = themed("ink-soft");
      if (row >= 11 || index % Math.ceil(11 / row) === 0) context.fillText(lanes[index]!.label.slice(0, 13), LEFT - 8, top + row / 2 + 4);
    });
  }

  private showCursor(): void {
    const { view, options, host } = this;
    const [from, to] = view.range();
    const at = view.cursor;
    const shown = at !== undefined && at >= from && at <= to;
    this.cursorLine.hidden = !shown;
    if (shown) this.cursorLine.style.left = `${LEFT + ((at - from) / (to - from)) * (host.clientWidth - LEFT)}px`;
    const times = options.times();
    const place = at === undefined ? times.length - 1 : indexAt(times, at);
    let free = options.prbs;
    const spoken = options.lanes.map(({ label, values }, index) => {
      const value = place < 0 ? NaN : values()[place]!;
      free -= value || 0;
      this.readings[index]!.textContent = number(value);
      return `${label} ${number(value)} PRB`;
    });
    this.readings.at(-1)!.textContent = place < 0 ? "–" : number(Math.max(0, free));
    host.setAttribute("aria-valuemax", String(to));
    host.setAttribute("aria-valuenow", number(at ?? to));
    host.setAttribute("aria-valuetext", `${number(at ?? to)} s: ${spoken.join(", ")}`);
  }
}

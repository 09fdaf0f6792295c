// One figure against another, a mark per row, with the Pareto front.

import { h, replace, svg } from "./dom";
import { number, ticks, titleOf, unitOf } from "./columns";
import { colour, themed } from "./palette";
import { draw, savePng, saveSvg, type Line } from "./picture";

export interface Point {
  row: number;
  x: number;
  y: number;
  /** What its colour and its shape stand for. */
  group: string;
  label: string;
}

const [WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM] = [560, 360, 60, 14, 16, 44];
const SHAPES = [
  "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
  "M-5 -5H5V5H-5Z",
  "M0 -6L6 5H-6Z",
  "M0 -6.5L6.5 0L0 6.5L-6.5 0Z",
  "M-6 -5H6L0 6Z",
  "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
] as const;
/** So many points can be reached with the Tab key; more would be a maze. */
const MOST_TAB_STOPS = 60;

/** Whether less of a figure is better. */
export function lessIsBetter(column: string): boolean {
  return /delay|rtt|loss|jitter|completion|retrans|timeouts|dropped/.test(column);
}

/** The points that no other one beats in both figures, by increasing x. */
export function paretoFront(points: readonly Point[], x: string, y: string): Point[] {
  const [signX, signY] = [lessIsBetter(x) ? 1 : -1, lessIsBetter(y) ? 1 : -1];
  const sorted = [...points].sort((a, b) => signX * (a.x - b.x) || signY * (a.y - b.y));
  let best = Infinity;
  const front = sorted.filter((point) => {
    if (signY * point.y >= best) return false;
    best = signY * point.y;
    return true;
  });
  return front.sort((a, b) => a.x - b.x);
}

export class Scatter {
  readonly element: HTMLElement;
  private readonly root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "scatter", role: "group" });
  private readonly legend = h("div", { class: "legend" });
  private points: readonly Point[] = [];
  private front: Point[] = [];
  private x = "";
  private y = "";

  constructor(private readonly onpoint: (row: number | undefined) => void) {
    const save = (text: string, act: () => unknown) => h("button", { type: "button", class: "small", onclick: () => void act() }, text);
    this.element = h(
      "figure",
      { class: "chart" },
      this.legend,
      this.root,
      h("p", { class: "hint" }, "The line joins the points that no other one beats in both figures. Filters of the table count here, too."),
      h("div", { class: "row" }, save("PNG", () => savePng("pareto", this.picture())), save("SVG", () => saveSvg("pareto", this.picture()))),
    );
  }

  show(points: readonly Point[], x: string, y: string): void {
    [this.points, this.x, this.y] = [points, x, y];
    this.front = paretoFront(points, x, y);
    this.drawAll();
  }

  /** Makes a row's point stand out. */
  highlight(row: number | undefined): void {
    for (const mark of this.root.querySelectorAll<SVGElement>("[data-row]")) mark.classList.toggle("hot", mark.dataset["row"] === String(row));
  }

  restyle(): void {
    this.drawAll();
  }

  private groups(): string[] {
    return [...new Set(this.points.map(({ group }) => group))];
  }

  private range(of: "x" | "y"): [number, number] {
    const most = Math.max(0, ...this.points.map((point) => point[of]));
    return [Math.min(0, ...this.points.map((point) => point[of])), most * 1.06 || 1];
  }

  private axis(column: string): string {
    const unit = unitOf(column).name;
    return `${titleOf(column)}${unit && `, ${unit}`}`;
  }

  private drawAll(): void {
    const [ink, soft, grid] = [themed("ink"), themed("ink-soft"), themed("grid")];
    const [xRange, yRange] = [this.range("x"), this.range("y")];
    const toX = (value: number) => LEFT + ((value - xRange[0]) / (xRange[1] - xRange[0])) * (WIDTH - LEFT - RIGHT);
    const toY = (value: number) => HEIGHT - BOTTOM - ((value - yRange[0]) / (yRange[1] - yRange[0])) * (HEIGHT - TOP - BOTTOM);
    const text = { "font-size": 12, fill: soft };
    const groups = this.groups();
    this.root.replaceChildren();
    this.root.setAttribute("aria-label", `${this.axis(this.y)} against ${this.axis(this.x)}, ${this.points.length} points`);
    for (const mark of ticks(...xRange, 7)) {
      this.root.append(svg("line", { x1: toX(mark), x2: toX(mark), y1: TOP, y2: HEIGHT - BOTTOM, stroke: grid }));
      this.root.append(svg("text", { ...text, x: toX(mark), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, number(mark)));
    }
    for (const mark of ticks(...yRange, 6)) {
      this.root.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: toY(mark), y2: toY(mark), stroke: grid }));
      this.root.append(svg("text", { ...text, x: LEFT - 6, y: toY(mark) + 4, "text-anchor": "end" }, number(mark)));
    }
    this.root.append(svg("text", { ...text, x: (LEFT + WIDTH) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, this.axis(this.x)));
    const middle = (TOP + HEIGHT - BOTTOM) / 2;
    this.root.append(svg("text", { ...text, x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, this.axis(this.y)));
    const line = this.front.map(({ x, y }, index) => `${index ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join("");
    if (line) this.root.append(svg("path", { d: line, fill: "none", stroke: ink, "stroke-width": 1.5, "stroke-dasharray": "5 4", class: "front" }));
    const stops = this.points.length <= MOST_TAB_STOPS;
    for (const point of this.points) {
      const group = groups.indexOf(point.group);
      const label = `${point.label}: ${this.axis(this.x)} ${number(point.x)}, ${this.axis(this.y)} ${number(point.y)}`;
      const mark = svg(
        "path",
        {
          d: SHAPES[group % SHAPES.length],
          transform: `translate(${toX(point.x).toFixed(1)} ${toY(point.y).toFixed(1)})`,
          fill: colour(group),
          "data-row": point.row,
          role: "img",
          tabindex: stops ? 0 : undefined,
          "aria-label": label,
          onmouseenter: () => this.onpoint(point.row),
          onmouseleave: () => this.onpoint(undefined),
          onfocus: () => this.onpoint(point.row),
          onblur: () => this.onpoint(undefined),
        },
        svg("title", {}, label),
      );
      this.root.append(mark);
    }
    replace(
      this.legend,
      groups.map((group, index) =>
        h("span", { class: "key" }, svg("svg", { viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: SHAPES[index % SHAPES.length], fill: colour(index) })), group),
      ),
    );
  }

  private picture(): SVGSVGElement {
    const lines: Line[] = this.groups().map((group, index) => ({
      label: group,
      colour: colour(index) === "#f2f2f2" ? "#000000" : colour(index),
      dash: [],
      marks: true,
      points: this.points.filter((point) => point.group === group).map(({ x, y }) => [x, y] as const),
    }));
    lines.push({ label: "Pareto front", colour: "#1a1a1a", dash: [5, 4], points: this.front.map(({ x, y }) => [x, y] as const) });
    return draw({ title: `${titleOf(this.y)} against ${titleOf(this.x)}`, x: this.axis(this.x), y: this.axis(this.y), xRange: this.range("x"), yRange: this.range("y"), lines });
  }
}

// Pictures of charts that stand alone: SVG, and PNG made from it. They are light, for papers.

import { svg, download } from "./dom";
import { number, ticks } from "./columns";

export interface Line {
  label: string;
  colour: string;
  dash: readonly number[];
  points: readonly (readonly [x: number, y: number | null])[];
  /** Markers instead of a line. */
  marks?: boolean;
}

export interface Picture {
  title: string;
  x: string;
  y: string;
  xRange: readonly [number, number];
  yRange: readonly [number, number];
  lines: readonly Line[];
}

const [WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM] = [800, 420, 64, 64, 16, 48];
const INK = "#1a1a1a";

export function draw(picture: Picture): SVGSVGElement {
  const [plotWidth, plotHeight] = [WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
  const scale = ([low, high]: readonly [number, number], length: number) => (value: number) => ((value - low) / (high - low || 1)) * length;
  const [toX, toY] = [scale(picture.xRange, plotWidth), scale(picture.yRange, plotHeight)];
  const x = (value: number) => LEFT + toX(value);
  const y = (value: number) => TOP + plotHeight - toY(value);
  const text = { "font-family": "system-ui, sans-serif", fill: INK, "font-size": 13 };
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT });
  root.append(svg("rect", { width: WIDTH, height: HEIGHT, fill: "#ffffff" }));
  root.append(svg("text", { ...text, x: LEFT, y: 22, "font-weight": "bold", "font-size": 15 }, picture.title));
  for (const mark of ticks(...picture.xRange, 8)) {
    root.append(svg("line", { x1: x(mark), x2: x(mark), y1: TOP, y2: TOP + plotHeight, stroke: "#e0e0e0" }));
    root.append(svg("text", { ...text, x: x(mark), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(mark)));
  }
  for (const mark of ticks(...picture.yRange, 6)) {
    root.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(mark), y2: y(mark), stroke: "#e0e0e0" }));
    root.append(svg("text", { ...text, x: LEFT - 8, y: y(mark) + 4, "text-anchor": "end" }, number(mark)));
  }
  root.append(svg("text", { ...text, x: LEFT + plotWidth / 2, y: HEIGHT - 10, "text-anchor": "middle" }, picture.x));
  const middle = TOP + plotHeight / 2;
  root.append(svg("text", { ...text, x: 16, y: middle, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})` }, picture.y));
  let legend = LEFT;
  for (const line of picture.lines) {
    if (line.marks) {
      for (const [px, py] of line.points) if (py !== null) root.append(svg("circle", { cx: x(px), cy: y(py), r: 5, fill: line.colour }));
    } else {
      root.append(
        svg("path", { d: path(line.points, x, y), fill: "none", stroke: line.colour, "stroke-width": 1.5, "stroke-dasharray": line.dash.join(" ") || undefined }),
      );
    }
    root.append(svg("line", { x1: legend, x2: legend + 22, y1: 44, y2: 44, stroke: line.colour, "stroke-width": 3, "stroke-dasharray": line.dash.join(" ") || undefined }));
    root.append(svg("text", { ...text, x: legend + 28, y: 48 }, line.label));
    // About the width of the text in this font.
    legend += 44 + line.label.length * 7.2;
  }
  return root;
}

function path(points: Line["points"], x: (value: number) => number, y: (value: number) => number): string {
  let drawing = false;
  let d = "";
  for (const [px, py] of points) {
    if (py === null) {
      drawing = false;
      continue;
    }
    d += `${drawing ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
    drawing = true;
  }
  return d;
}

export function saveSvg(name: string, picture: SVGSVGElement): void {
  download(`${name}.svg`, new XMLSerializer().serializeToString(picture), "image/svg+xml");
}

/** Twice the size of the SVG, for sharp print. */
export async function savePng(name: string, picture: SVGSVGElement): Promise<void> {
  const text = new XMLSerializer().serializeToString(picture);
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width.baseVal.value * 2, picture.height.baseVal.value * 2];
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  const bytes = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!bytes) throw new Error("this browser could not encode the picture as PNG; save it as SVG instead");
  download(`${name}.png`, bytes, "image/png");
}

/** Text as CSV wants it: quoted where needed. */
function cell(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveCsv(name: string, header: readonly string[], rows: Iterable<readonly (number | string | null)[]>): void {
  let text = `${header.map(cell).join(",")}\n`;
  for (const row of rows) {
    text += `${row.map((value) => (value === null || (typeof value === "number" && !Number.isFinite(value)) ? "" : cell(String(value)))).join(",")}\n`;
  }
  download(`${name}.csv`, text, "text/csv");
}

// The map of cells and their users, who can be dragged, or moved with the arrow keys.

import { h, svg } from "./dom";
import { number, ticks } from "./columns";
import { colour, themed } from "./palette";

export interface MapUser {
  name: string;
  x: number;
  y: number;
  movable: boolean;
  /** A line about it, such as its CQI. */
  note?: string;
}

export interface MapCell {
  name: string;
  x: number;
  y: number;
}

const [WIDTH, HEIGHT, MARGIN] = [420, 300, 34];
/** Metres that an arrow key moves a user; ten times as many with Shift. */
const KEY_STEP = 10;

export class CellMap {
  readonly element: HTMLElement;
  private readonly root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "group", "aria-label": "Map of the cell" });
  private readonly hint = h("p", { class: "hint" }, "Drag a user, or select it and use the arrow keys (10 m; 100 m with Shift).");
  private cells: readonly MapCell[] = [];
  private users: readonly MapUser[] = [];
  private dragged: { user: MapUser; x: number; y: number } | undefined;
  private reach = 500;
  /** Where a key is moving a user, until the run has it there. */
  private readonly going = new Map<string, { x: number; y: number; until: number }>();

  constructor(private readonly onmove: (user: string, x: number, y: number) => void) {
    this.element = h("div", { class: "map-box" }, this.root, this.hint);
    this.root.addEventListener("pointermove", (event) => this.drag(event));
    this.root.addEventListener("pointerup", () => this.drop());
    this.root.addEventListener("pointercancel", () => {
      this.dragged = undefined;
      this.draw();
    });
  }

  show(cells: readonly MapCell[], users: readonly MapUser[]): void {
    this.cells = cells;
    this.users = users;
    this.hint.hidden = !users.some(({ movable }) => movable);
    if (this.dragged) return;
    const farthest = Math.max(100, ...[...cells, ...users].flatMap(({ x, y }) => [Math.abs(x), Math.abs(y) * 1.3]));
    // Room to drag users outwards; it grows and shrinks in steps, so that the map holds still.
    const reach = 2 ** Math.ceil(Math.log2((farthest * 1.3) / 100)) * 100;
    if (reach > this.reach || reach < this.reach / 2) this.reach = reach;
    this.draw();
  }

  private scale(): number {
    return (WIDTH / 2 - MARGIN) / this.reach;
  }

  private place(user: MapUser): { x: number; y: number } {
    if (this.dragged?.user.name === user.name) return this.dragged;
    const going = this.going.get(user.name);
    if (going && performance.now() < going.until) return going;
    return user;
  }

  private draw(): void {
    // The focus stays on the user that it was on.
    const focused = document.activeElement?.closest<SVGElement>("[data-user]");
    const held = focused && this.root.contains(focused) ? focused.dataset["user"] : undefined;
    const scale = this.scale();
    const toX = (x: number) => WIDTH / 2 + x * scale;
    const toY = (y: number) => HEIGHT / 2 - y * scale;
    const [ink, soft, grid] = [themed("ink"), themed("ink-soft"), themed("grid")];
    this.root.replaceChildren();
    const yReach = (HEIGHT / 2 - MARGIN) / scale;
    const text = { "font-size": 11, fill: soft };
    for (const mark of ticks(-this.reach, this.reach, 6)) {
      this.root.append(svg("line", { x1: toX(mark), x2: toX(mark), y1: MARGIN / 2, y2: HEIGHT - MARGIN, stroke: grid }));
      this.root.append(svg("text", { ...text, x: toX(mark), y: HEIGHT - MARGIN + 14, "text-anchor": "middle" }, number(mark)));
    }
    for (const mark of ticks(-yReach, yReach, 4)) {
      this.root.append(svg("line", { x1: MARGIN, x2: WIDTH - 8, y1: toY(mark), y2: toY(mark), stroke: grid }));
      this.root.append(svg("text", { ...text, x: MARGIN - 4, y: toY(mark) + 4, "text-anchor": "end" }, number(mark)));
    }
    this.root.append(svg("text", { ...text, x: WIDTH / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "east, m"));
    this.root.append(svg("text", { ...text, x: 10, y: HEIGHT / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${HEIGHT / 2})` }, "north, m"));
    for (const cell of this.cells) {
      const [x, y] = [toX(cell.x), toY(cell.y)];
      this.root.append(svg("path", { d: `M${x} ${y - 14}L${x - 8} ${y + 6}L${x + 8} ${y + 6}Z`, fill: "none", stroke: ink, "stroke-width": 2 }));
      this.root.append(svg("text", { ...text, fill: ink, x, y: y + 20, "text-anchor": "middle" }, cell.name));
    }
    this.users.forEach((user, index) => {
      const { x, y } = this.place(user);
      const group = svg("g", {
        "data-user": user.name,
        class: user.movable ? "user movable" : "user",
        transform: `translate(${toX(x).toFixed(1)} ${toY(y).toFixed(1)})`,
        ...(user.movable ? { tabindex: 0, role: "button" } : { role: "img" }),
        "aria-label": `${user.name} at ${number(x)} m east, ${number(y)} m north${user.note ? `, ${user.note}` : ""}${user.movable ? "; arrow keys move it" : ""}`,
        onpointerdown: (event: PointerEvent) => {
          if (!user.movable) return;
          event.preventDefault();
          this.root.setPointerCapture(event.pointerId);
          this.dragged = { user, x, y };
          this.root.querySelector<SVGElement>(`[data-user="${CSS.escape(user.name)}"]`)?.focus();
        },
        onkeydown: (event: KeyboardEvent) => this.nudge(event, user),
      });
      // A wide edge makes it easy to touch.
      group.append(svg("circle", { r: 16, fill: "transparent" }), svg("circle", { r: 8, fill: colour(index), stroke: themed("card"), "stroke-width": 2 }));
      const west = toX(x) > WIDTH - 90;
      const side = { x: toX(x) + (west ? -12 : 12), "text-anchor": west ? "end" : "start" };
      const label = svg("g", { class: "label", "aria-hidden": "true" }, svg("text", { ...side, y: toY(y) + 4, "font-size": 12, fill: ink }, user.name));
      if (user.note) label.append(svg("text", { ...side, y: toY(y) + 17, "font-size": 10, fill: soft }, user.note));
      this.root.append(label, group);
      if (user.name === held) group.focus({ preventScroll: true });
    });
  }

  private nudge(event: KeyboardEvent, user: MapUser): void {
    const step = event.shiftKey ? 10 * KEY_STEP : KEY_STEP;
    const moves: Record<string, readonly [number, number]> = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const move = moves[event.key];
    if (!move || !user.movable) return;
    event.preventDefault();
    const { x, y } = this.place(user);
    this.go(user, x + move[0], y + move[1]);
  }

  private drag(event: PointerEvent): void {
    if (!this.dragged) return;
    const box = this.root.getBoundingClientRect();
    // The drawing keeps its shape within the box.
    const shown = Math.min(box.width / WIDTH, box.height / HEIGHT);
    const x = (event.clientX - box.left - (box.width - WIDTH * shown) / 2) / shown;
    const y = (event.clientY - box.top - (box.height - HEIGHT * shown) / 2) / shown;
    const clamp = (value: number, most: number) => Math.min(most, Math.max(-most, value));
    this.dragged.x = Math.round(clamp((x - WIDTH / 2) / this.scale(), this.reach));
    this.dragged.y = Math.round(clamp((HEIGHT / 2 - y) / this.scale(), (HEIGHT / 2 - MARGIN) / this.scale()));
    this.draw();
  }

  private drop(): void {
    if (!this.dragged) return;
    const { user, x, y } = this.dragged;
    this.dragged = undefined;
    if (x !== user.x || y !== user.y) this.go(user, x, y);
    else this.draw();
  }

  private go(user: MapUser, x: number, y: number): void {
    this.going.set(user.name, { x, y, until: performance.now() + 1500 });
    this.draw();
    this.onmove(user.name, x, y);
  }
}

// The part of time that linked charts show, and the instant that they point at.

/** What is shown at least, while there is nothing yet. */
const LEAST = 0.1;

export class TimeView {
  /** What is shown; undefined: all there is, or the last `window` seconds of it. */
  zoomed: readonly [from: number, to: number] | undefined;
  /** Seconds shown of a run that goes on; undefined: all. */
  window: number | undefined;
  cursor: number | undefined;
  private end = 0;
  private readonly listeners = new Set<(what: "range" | "cursor") => void>();

  listen(listener: (what: "range" | "cursor") => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The latest time of any chart. */
  extend(end: number): void {
    if (end > this.end) {
      this.end = end;
      this.tell("range");
    }
  }

  /** The latest time is earlier now. */
  shrink(end: number): void {
    this.end = end;
    if (this.zoomed && this.zoomed[0] >= end) this.zoomed = undefined;
    this.tell("range");
  }

  /** Forgets the data, as before a new run. */
  restart(): void {
    this.end = 0;
    this.cursor = undefined;
    this.zoomed = undefined;
    this.tell("range");
  }

  range(): readonly [from: number, to: number] {
    if (this.zoomed) return this.zoomed;
    const to = Math.max(this.end, LEAST);
    return [this.window === undefined ? 0 : Math.max(0, to - this.window), to];
  }

  zoom(from: number, to: number): void {
    const [low, high] = [Math.max(0, Math.min(from, to)), Math.min(Math.max(this.end, LEAST), Math.max(from, to))];
    this.zoomed = high - low > 1e-6 ? [low, high] : undefined;
    this.tell("range");
  }

  reset(): void {
    this.zoomed = undefined;
    this.tell("range");
  }

  point(time: number | undefined): void {
    this.cursor = time === undefined ? undefined : Math.min(Math.max(time, 0), this.end);
    this.tell("cursor");
  }

  /** What the keys of a chart do; true if the key has a meaning. */
  key(event: KeyboardEvent): boolean {
    const [from, to] = this.range();
    const span = to - from;
    const at = this.cursor ?? to;
    const step = span / (event.shiftKey ? 10 : 100);
    switch (event.key) {
      case "ArrowLeft":
        this.point(at - step);
        break;
      case "ArrowRight":
        this.point(at + step);
        break;
      case "Home":
        this.point(from);
        break;
      case "End":
        this.point(to);
        break;
      case "+":
      case "=":
        this.zoom(at - span / 4, at + span / 4);
        break;
      case "-":
        if (span * 2 >= this.end) this.reset();
        else this.zoom(at - span, at + span);
        break;
      case "Escape":
        this.cursor = undefined;
        this.reset();
        break;
      default:
        return false;
    }
    return true;
  }

  private tell(what: "range" | "cursor"): void {
    for (const listener of this.listeners) listener(what);
  }
}

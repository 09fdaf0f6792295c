// Columns of numbers, and what their names say about their units.

/** A column that grows: live series arrive in pieces. */
export class Column {
  private buffer = new Float64Array(256);
  length = 0;

  static of(values: ArrayLike<number>): Column {
    const column = new Column();
    column.append(values);
    return column;
  }

  append(values: ArrayLike<number>): void {
    const needed = this.length + values.length;
    if (needed > this.buffer.length) {
      const larger = new Float64Array(Math.max(needed, this.buffer.length * 2));
      larger.set(this.values());
      this.buffer = larger;
    }
    this.buffer.set(values, this.length);
    this.length = needed;
  }

  /** Replaces what is behind the first `first` values. */
  overwrite(first: number, values: ArrayLike<number>): void {
    this.length = Math.min(this.length, first);
    this.append(values);
  }

  /** The values so far; NaN where there is none. Valid until the next `append`. */
  values(): Float64Array {
    return this.buffer.subarray(0, this.length);
  }

  last(): number {
    return this.length === 0 ? NaN : this.buffer[this.length - 1]!;
  }
}

export interface Unit {
  /** As an axis shows it; empty for plain numbers. */
  name: string;
  /** Shown value over the column's. */
  factor: number;
}

/** The unit in which a column is shown, by the ending of its name: docs/results.md. */
export function unitOf(name: string): Unit {
  const column = name.replace(/_ci95$/, "");
  if (column.endsWith("_bit_s")) return { name: "Mbit/s", factor: 1e-6 };
  if (column.endsWith("_mbit")) return { name: "Mbit/s", factor: 1 };
  if (column.endsWith("_bytes")) return { name: "KB", factor: 1e-3 };
  if (column.endsWith("_segments_per_s")) return { name: "segments/s", factor: 1 };
  if (column.endsWith("_segments")) return { name: "segments", factor: 1 };
  if (column.endsWith("_packets")) return { name: "packets", factor: 1 };
  if (column.endsWith("_prbs") || column === "prbs") return { name: "PRB", factor: 1 };
  if (column.endsWith("_db")) return { name: "dB", factor: 1 };
  if (column.endsWith("_m")) return { name: "m", factor: 1 };
  if (column.endsWith("_ms")) return { name: "ms", factor: 1 };
  if (column.endsWith("_per_s")) return { name: "1/s", factor: 1 };
  if (column === "time_s" || column === "start_s" || column === "measured_s") return { name: "s", factor: 1 };
  if (column.startsWith("completion")) return { name: "s", factor: 1 };
  if (column.endsWith("_s")) return { name: "ms", factor: 1e3 };
  if (["utilisation", "loss_rate", "retransmission_rate"].includes(column)) return { name: "%", factor: 100 };
  return { name: "", factor: 1 };
}

/** A column's name for people: without its unit. */
export function titleOf(column: string): string {
  if (column.endsWith("_ci95")) return "±";
  const plain = column.replace(/_(bit_s|bytes|packets|segments|db|ms|m|s)$/, "");
  if (plain === "cc") return "Control";
  const words = plain
    .replace(/^state_/, "")
    .replaceAll("_", " ")
    .replaceAll(/\b(rtt|cqi|mcs|sinr|bw|bdp|cwnd|wan|ran)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Four digits that count. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
  if (size >= 1e4) return value.toFixed(0);
  const digits = value.toPrecision(4);
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}

/** The index of the last of increasing `times` that is not after `time`; -1 if all are. */
export function indexAt(times: Float64Array, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Marks of an axis from `from` to `to`: multiples of 1, 2 or 5 times a power of ten, about `count` of them. */
export function ticks(from: number, to: number, count: number): number[] {
  const rough = (to - from) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [from];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const marks: number[] = [];
  for (let mark = Math.ceil(from / step); mark * step <= to + step * 1e-9; mark += 1) marks.push(Number((mark * step).toPrecision(12)));
  return marks;
}

// Fewer points for the same picture: of all points of a pixel only the smallest and the largest are drawn.

/** Times and values for uPlot; `null` is a gap. */
export type Drawn = [number[], ...(number | null)[][]];

/**
 * What is drawn of increasing `times` from `from` to `to` on `pixels` columns, with a point beyond each end so that lines lead to the
 * edge. Each value is multiplied by its series' factor.
 */
export function decimate(times: Float64Array, series: readonly Float64Array[], factors: readonly number[], from: number, to: number, pixels: number): Drawn {
  const first = Math.max(0, lowerBound(times, from) - 1);
  const end = Math.min(times.length, lowerBound(times, to) + 1);
  const count = end - first;
  if (count <= 4 * pixels) {
    const shown = Array.from(times.subarray(first, end));
    const plain = series.map((values, index) => Array.from(values.subarray(first, end), (value) => (Number.isNaN(value) ? null : value * factors[index]!)));
    return [shown, ...plain];
  }
  // The same bounds of pixels for all series, because uPlot wants the same times for all.
  const starts = new Int32Array(pixels + 1);
  const width = (times[end - 1]! - times[first]!) / pixels;
  let next = first;
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    starts[pixel] = next;
    const until = times[first]! + (pixel + 1) * width;
    while (next < end && (times[next]! < until || pixel === pixels - 1)) next += 1;
  }
  starts[pixels] = end;
  const shown: number[] = [];
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    if (starts[pixel]! < starts[pixel + 1]!) shown.push(times[starts[pixel]!]!, times[starts[pixel + 1]! - 1]!);
  }
  return [shown, ...series.map((values, index) => extremes(values, starts, pixels, factors[index]!))];
}

/** The smallest and the largest value of each pixel, in the order in which they come. */
function extremes(values: Float64Array, starts: Int32Array, pixels: number, factor: number): (number | null)[] {
  const drawn: (number | null)[] = [];
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const [start, end] = [starts[pixel]!, starts[pixel + 1]!];
    if (start === end) continue;
    let [low, high, lowAt, highAt] = [Infinity, -Infinity, -1, -1];
    for (let index = start; index < end; index += 1) {
      const value = values[index]!;
      if (value < low) [low, lowAt] = [value, index];
      if (value > high) [high, highAt] = [value, index];
    }
    if (lowAt < 0) drawn.push(null, null);
    else if (lowAt <= highAt) drawn.push(low * factor, high * factor);
    else drawn.push(high * factor, low * factor);
  }
  return drawn;
}

function lowerBound(times: Float64Array, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

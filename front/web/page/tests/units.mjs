// What needs no browser: `node --test tests/units.mjs`.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createServer } from "vite";

const vite = await createServer({ root: new URL("..", import.meta.url).pathname, server: { middlewareMode: true, hmr: false, ws: false, watch: null }, appType: "custom", logLevel: "error", optimizeDeps: { noDiscovery: true } });
after(() => vite.close());
const load = (name) => vite.ssrLoadModule(`/src/${name}.ts`);
const [{ decimate }, { decode, squeeze, expand }, { parse, quantity, write }, columns, { paretoFront, lessIsBetter }, { TimeView }] = await Promise.all(["decimate", "api", "control", "columns", "scatter", "view"].map(load));

/** Numbers that look random and are the same each time. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("decimation keeps the extremes of every pixel, and gaps", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const next = numbers(seed);
    const count = 1 + Math.floor(next() * 3000);
    const pixels = 10 + Math.floor(next() * 100);
    let time = 0;
    const times = Float64Array.from({ length: count }, () => (time += next() + 1e-9));
    const values = Float64Array.from({ length: count }, () => (next() < 0.1 ? NaN : next() * 100 - 50));
    const [shown, drawn] = decimate(times, [values], [2], 0, time, pixels);
    assert.equal(shown.length, drawn.length);
    assert.ok(shown.length <= Math.max(count, 2 * pixels) && shown.length <= 4 * pixels + 2);
    for (let index = 1; index < shown.length; index += 1) assert.ok(shown[index] >= shown[index - 1], `seed ${seed}: times increase`);
    const finite = [...values].filter((value) => !Number.isNaN(value)).map((value) => 2 * value);
    const left = drawn.filter((value) => value !== null);
    if (finite.length) assert.deepEqual([Math.min(...left), Math.max(...left)], [Math.min(...finite), Math.max(...finite)], `seed ${seed}`);
    else assert.equal(left.length, 0);
  }
});

test("a zoomed range has a point beyond each end", () => {
  const times = Float64Array.from({ length: 100 }, (_, index) => index);
  const [shown] = decimate(times, [times], [1], 10.5, 20.5, 500);
  assert.deepEqual([shown[0], shown.at(-1)], [10, 21]);
});

test("frames are read as the server's description writes them", () => {
  const example = "52504c3101000000000000000000000002000000010000000000000000000000" + "9a9999999999b93f9a9999999999c93f" + "0000803f0000c07f";
  const bytes = Uint8Array.from(example.match(/../g), (digits) => Number.parseInt(digits, 16)).buffer;
  const frame = decode(bytes);
  assert.deepEqual([frame.kind, frame.generation, frame.first, [...frame.times]], [1, 0, 0, [0.1, 0.2]]);
  assert.deepEqual([...frame.columns[0]], [1, NaN]);
  assert.throws(() => decode(bytes.slice(0, 40)), /48 bytes|56 bytes/);
  assert.throws(() => decode(new ArrayBuffer(64)), /RPL1/);
});

test("a time is a number with its unit", () => {
  for (const [text, number, unit] of [["50ms", "50", "ms"], ["1.5 s", "1.5", "s"], ["15KB", "15", "KB"], ["soon", "", "soon"], ["1:2", "", ""]]) assert.deepEqual(quantity(text), { number, unit }, text);
});

test("a control's text survives its parts", () => {
  const controls = { algorithms: [], decorators: [], short_names: { c2tcp: "cubic+c2tcp", reno: "newreno" } };
  for (const [text, expected] of [
    ["cubic", "cubic"],
    ["cubic+c2tcp+meld-de:hystart=off:target=50ms", "cubic+c2tcp+meld-de:hystart=off:target=50ms"],
    ["cubic:rfc9438", "cubic:rfc9438=on"],
    ["", ""],
    ["c2tcp:target=50ms", "cubic+c2tcp:target=50ms"],
    ["reno+c2tcp", "newreno+c2tcp"],
    ["sigma:profile=thesis:p_max=own_plus_unused", "sigma:profile=thesis:p_max=own_plus_unused"],
  ]) assert.equal(write(parse(text, controls)), expected);
});

test("no point beats one of the Pareto front, and every other one is beaten or equalled", () => {
  assert.ok(lessIsBetter("delay_p95_s") && !lessIsBetter("goodput_bit_s"));
  for (let seed = 1; seed <= 100; seed += 1) {
    const next = numbers(seed);
    const points = Array.from({ length: 40 }, (_, row) => ({ row, x: Math.floor(next() * 10), y: Math.floor(next() * 10), group: "", label: "" }));
    const front = new Set(paretoFront(points, "delay_p95_s", "goodput_bit_s"));
    const beats = (a, b) => a.x <= b.x && a.y >= b.y && (a.x < b.x || a.y > b.y);
    for (const point of points) {
      const beaten = points.some((other) => beats(other, point));
      if (front.has(point)) assert.ok(!beaten, `seed ${seed}`);
      else assert.ok(beaten || [...front].some(({ x, y }) => x === point.x && y === point.y), `seed ${seed}`);
    }
  }
});

test("a state of the page survives its address", async () => {
  const text = JSON.stringify({ plan: { text: 'duration = "10s"\n# Übergröße → 你好\n'.repeat(40) } });
  const squeezed = await squeeze(text);
  assert.match(squeezed, /^[A-Za-z0-9_-]+$/);
  assert.equal(await expand(squeezed), text);
});

test("columns grow, are overwritten, and are found by time", () => {
  const column = columns.Column.of([1, 2, 3]);
  column.overwrite(2, [7, 8]);
  column.append(new Float64Array(1000).fill(9));
  assert.deepEqual([[...column.values().subarray(0, 5)], column.length, column.last()], [[1, 2, 7, 8, 9], 1004, 9]);
  const times = Float64Array.of(0.1, 0.2, 0.3);
  assert.deepEqual([0.05, 0.1, 0.25, 9].map((time) => columns.indexAt(times, time)), [-1, 0, 1, 2]);
});

test("units follow from names, and numbers have four digits", () => {
  for (const [column, name, factor] of [["goodput_bit_s", "Mbit/s", 1e-6], ["srtt_s", "ms", 1e3], ["cwnd_bytes", "KB", 1e-3], ["sinr_db", "dB", 1], ["loss_rate", "%", 100], ["goodput_bit_s_ci95", "Mbit/s", 1e-6], ["x_m", "m", 1], ["time_s", "s", 1]]) {
    assert.deepEqual(columns.unitOf(column), { name, factor }, column);
  }
  assert.deepEqual([0, 11.6789, 20000, 1234567, 0.00001234, 10, NaN].map(columns.number), ["0", "11.68", "20000", "1.23e+6", "1.23e-5", "10", "–"]);
  assert.deepEqual(columns.ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
});

test("a zoom stays within the data", () => {
  const view = new TimeView();
  view.extend(60);
  view.zoom(-5, 30);
  assert.deepEqual(view.range(), [0, 30]);
  view.zoom(50, 90);
  assert.deepEqual(view.range(), [50, 60]);
  view.reset();
  view.window = 10;
  assert.deepEqual(view.range(), [50, 60]);
});

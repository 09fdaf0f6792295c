// What a run costs that is watched at the clock's speed: `node tests/costs.mjs PATH-OF-RANPACE [SECONDS]`.
//
// The page that one meets first, an LTE cell with two users, plays in a tab with all of its charts; then 49 more viewers take the same stream. The
// server's processor time includes the simulation. Aims: a fifth of a core for ten charts at 20 Hz, no task of the page over 50 ms, and twice
// the cost of one viewer for fifty. The machine has to be quiet: what else runs counts as the page's long tasks.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startBrowser, startLab, useBuilt } from "./start.mjs";

const [, , program, length = "20"] = process.argv;
const seconds = Number(length);
if (!program || !(seconds > 0)) throw new Error("usage: node tests/costs.mjs PATH-OF-RANPACE [SECONDS]");
const VIEWERS = 50;
const ticks = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
const folder = mkdtempSync(join(tmpdir(), "lab-costs-"));
const browser = await startBrowser();
const lab = await startLab(resolve(program), folder, "results");

/** Processor time of the server so far, in seconds. */
function used() {
  // After the name in parentheses: the 14th and 15th field of the line are the time in user and in kernel mode (proc(5)).
  const fields = readFileSync(`/proc/${lab.process}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

const context = await browser.newContext({ viewport: { width: 1400, height: 1800 } });
await useBuilt(context);
const page = await context.newPage();
let id;
page.on("websocket", (socket) => (id = /sessions\/([^/]+)\/stream/.exec(socket.url())?.[1] ?? id));
await page.goto(lab.address);
await page.waitForFunction(() => document.querySelectorAll(".chart canvas").length >= 10);
await page.waitForTimeout(3_000);
await page.evaluate(() => {
  globalThis.long = [];
  globalThis.frames = 0;
  new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  const count = () => {
    globalThis.frames += 1;
    requestAnimationFrame(count);
  };
  requestAnimationFrame(count);
});

/** Server's share of a core, and frames per second and tasks over 50 ms of the page. */
async function measure() {
  const [before, frames, long, begun] = [used(), ...(await page.evaluate(() => [globalThis.frames, globalThis.long.length])), Date.now()];
  await page.waitForTimeout(seconds * 1_000);
  const after = await page.evaluate(() => [globalThis.frames, globalThis.long]);
  const took = (Date.now() - begun) / 1_000;
  return { share: (used() - before) / took, frames: (after[0] - frames) / took, long: after[1].slice(long) };
}
const shown = (what, { share, frames, long }) =>
  console.log(`${what.padEnd(12)} server ${(100 * share).toFixed(1)} % of a core; page ${frames.toFixed(1)} frames a second, tasks over 50 ms: ${long.map(Math.round).join(", ") || "none"}`);

console.log(`${await page.locator(".chart canvas").count()} charts in the page, ${seconds} s each`);
const one = await measure();
shown("one viewer", one);
const others = await context.newPage();
await others.goto(new URL("api/server", lab.address).href);
await others.evaluate(async ([stream, count]) => {
  globalThis.bytes = 0;
  const open = () => new Promise((opened, failed) => {
    const socket = new WebSocket(stream);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => (globalThis.bytes += data.byteLength ?? data.length);
    socket.onopen = opened;
    socket.onerror = failed;
  });
  await Promise.all(Array.from({ length: count }, open));
}, [new URL(`api/sessions/${id}/stream`, lab.address).href.replace("http", "ws"), VIEWERS - 1]);
// A tab behind others draws once a second.
await page.bringToFront();
await page.waitForTimeout(2_000);
const bytes = await others.evaluate(() => globalThis.bytes);
const fifty = await measure();
shown(`${VIEWERS} viewers`, fifty);
const rate = ((await others.evaluate(() => globalThis.bytes)) - bytes) / (VIEWERS - 1) / seconds / 1_000;
console.log(`${(fifty.share / one.share).toFixed(2)} times the cost of one; ${rate.toFixed(1)} KB a second for each viewer`);
await browser.close();
lab.stop();
rmSync(folder, { recursive: true, force: true });

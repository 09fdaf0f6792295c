// How long from the command to the first picture: `node tests/first.mjs PATH-OF-RANPACE [TIMES]`.
//
// The clock starts when `ranpace lab` is started, and stops at the frame in which the rate of the first run is drawn. The browser
// runs already, with an empty cache for each start: its own start is not the program's. The aim is one second.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startBrowser, startLab, useBuilt } from "./start.mjs";

const [, , program, count = "10"] = process.argv;
if (!program || !(Number(count) > 0)) throw new Error("usage: node tests/first.mjs PATH-OF-RANPACE [HOW OFTEN]");
const browser = await startBrowser();

/** The stages of one start, in ms since the command. */
async function measure() {
  const folder = mkdtempSync(join(tmpdir(), "lab-first-"));
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  await useBuilt(context);
  const page = await context.newPage();
  const begun = Date.now();
  const lab = await startLab(resolve(program), folder, "results");
  const listens = Date.now();
  await page.goto(lab.address, { waitUntil: "commit" });
  await page.waitForFunction(() => /\d/.test(document.querySelector(".chart .legend output")?.textContent ?? ""), undefined, { polling: "raf" });
  const drawn = Date.now();
  // The page's own clock tells where the time went.
  const stages = await page.evaluate(() => {
    const { timeOrigin } = performance;
    const entries = performance.getEntriesByType("resource");
    const of = (part) => entries.filter(({ name }) => name.includes(part)).map(({ responseEnd }) => timeOrigin + responseEnd);
    return { script: Math.max(...of("page.js")), lists: Math.max(...of("api/controls"), ...of("api/sources")), session: Math.max(...of("api/sessions")) };
  });
  await context.close();
  lab.stop();
  rmSync(folder, { recursive: true, force: true });
  return { listens: listens - begun, script: stages.script - begun, lists: stages.lists - begun, "run begun": stages.session - begun, drawn: drawn - begun };
}

const all = [];
for (let turn = 0; turn < Number(count); turn += 1) all.push(await measure());
await browser.close();
const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
console.log("stage        least   median  most, ms since the command");
for (const stage of Object.keys(all[0])) {
  const values = all.map((one) => one[stage]);
  console.log([stage.padEnd(11), ...[Math.min(...values), middle(values), Math.max(...values)].map((value) => value.toFixed(0).padStart(7))].join(" "));
}

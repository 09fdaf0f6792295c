// The pictures of docs/lab.md and of the README: `node tests/pictures.mjs PATH-OF-RANPACE`. Look at them before they are committed.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startEmulation } from "./running.mjs";
import { startBrowser, startLab, useBuilt } from "./start.mjs";

const [, , program, only = ""] = process.argv;
if (!program) throw new Error("usage: node tests/pictures.mjs PATH-OF-RANPACE [NAME OF A PICTURE]");
const ranpace = resolve(program);
const docs = resolve(import.meta.dirname, "../../../../docs");
const folder = mkdtempSync(join(tmpdir(), "lab-pictures-"));
const browser = await startBrowser();
execFileSync(ranpace, ["compare", "--seeds", "3", "--time", "20s", "--cc", "cubic,bbr1,vegas,c2tcp:target=50ms", "--out", "results"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
const lab = await startLab(ranpace, folder, "results");

async function take(name, hash, options, act = async () => {}) {
  if (only && name !== only) return;
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: "light", ...options });
  await useBuilt(context);
  const page = await context.newPage();
  await page.goto(lab.address + hash);
  await act(page);
  await page.waitForTimeout(800);
  await page.screenshot({ path: join(docs, `${name}.png`) });
  await context.close();
}

const ends = (page) => page.locator('.transport [data-phase="ended"], .transport [data-phase="paused"]').waitFor({ timeout: 120_000 });
async function playTo(page, seconds) {
  await page.locator(".chart canvas").first().waitFor();
  await page.locator(".transport input[type=range]").evaluate((range, value) => {
    range.value = String(value);
    range.dispatchEvent(new Event("change"));
  }, seconds);
  await page.waitForTimeout(500);
  await ends(page);
}

await take("lab", "", {}, async (page) => {
  await playTo(page, 12);
  const phone = page.locator('.live [data-user="phone"]');
  await phone.focus();
  for (let step = 0; step < 4; step += 1) await page.keyboard.press("Shift+ArrowRight");
  await page.locator("ol.changes li").waitFor();
  await playTo(page, 24);
  await page.waitForTimeout(5000);
});
await take("lab-compare", "#/play?tour=c2tcp&step=1", { viewport: { width: 1280, height: 1000 } }, async (page) => {
  await page.locator(".looked-at").first().waitFor();
  await page.waitForTimeout(12_000);
  await page.evaluate(() => scrollTo(0, 0));
});
await take("lab-results", "#/results?path=compare", { viewport: { width: 1400, height: 700 }, colorScheme: "dark" }, async (page) => {
  await page.locator(".scatter path").first().waitFor();
});
// An emulation that others see needs root.
const emulation = startEmulation(ranpace, folder);
await take("lab-live", `#/live?${new URLSearchParams({ address: emulation.address })}`, { viewport: { width: 1280, height: 940 } }, async (page) => {
  for (;;) {
    if (await page.locator(".chart canvas").count()) break;
    await page.waitForTimeout(500);
    await page.reload();
  }
  await page.waitForTimeout(14_000);
});
await emulation.end();
await browser.close();
lab.stop();
rmSync(folder, { recursive: true, force: true });

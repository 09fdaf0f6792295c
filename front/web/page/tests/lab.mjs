// The page with the real server: `node tests/lab.mjs target/debug/ranpace [FILTER]`.
//
// Each test clicks through a feature and compares what the page shows with the engine's figures. Screenshots are left in
// target/lab-screenshots.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startEmulation, startServer } from "./running.mjs";
import { startBrowser, startLab, useBuilt } from "./start.mjs";

const [, , program, filter = ""] = process.argv;
if (!program) throw new Error("usage: node tests/lab.mjs PATH-OF-RANPACE [WORDS OF A TEST]");
const browser = await startBrowser();
const ranpace = resolve(program);
const repository = resolve(import.meta.dirname, "../../../..");
const pictures = join(repository, "target/lab-screenshots");
const axe = readFileSync(join(import.meta.dirname, "../node_modules/axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "lab-test-"));
mkdirSync(pictures, { recursive: true });

/** A recording of one packet per millisecond: 12 Mbit/s. */
const RECORDING = Array.from({ length: 100 }, (_, index) => index + 1).join("\n") + "\n";

const run = (...args) => execFileSync(ranpace, args, { encoding: "utf8", cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
run("compare", "--rate", "12Mbit/s", "--rtt", "40ms", "--buffer", "60KB", "--cc", "cubic,vegas", "--seeds", "2", "--time", "5s", "--out", ".");

const lab = await startLab(ranpace, folder, ".");
const { address } = lab;

const api = async (path) => {
  const answer = await fetch(new URL(`api/${path}`, address));
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer;
};

/** Rows of CSV; what is quoted has no quotes in it here. */
const rows = (text) =>
  text.trim().split("\n").map((line) => [...line.matchAll(/("[^"]*"|[^,]*)(?:,|$)/g)].map(([, cell]) => cell.replaceAll('"', "")));

async function open(hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1800 }, acceptDownloads: true, colorScheme: "light", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(address).origin }).catch(() => {});
  await useBuilt(context);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.faults = [];
  page.on("pageerror", (fault) => page.faults.push(fault.stack));
  page.on("console", (message) => {
    // A scenario with mistakes is answered with 422, which the browser notes.
    if (message.type() === "error" && !message.text().includes("status of 422")) page.faults.push(message.text());
  });
  page.on("websocket", (socket) => {
    const found = /sessions\/([^/]+)\/stream/.exec(socket.url());
    if (found) (page.sessions ??= []).push(found[1]);
  });
  await page.goto(address + hash);
  return page;
}

const session = async (page, place = -1) => (await api(`sessions/${page.sessions.at(place)}`)).json();
const scenario = async (page, place = -1) => (await api(`sessions/${page.sessions.at(place)}/scenario`)).text();
const chart = (page, title, place = 0) => page.locator(`section.chart[aria-label^="${title}"]`).nth(place);
const button = (page, name) => page.getByRole("button", { name, exact: true });

async function until(what, check, timeout = 20_000) {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${timeout} ms in vain: ${what}`);
    await new Promise((wait) => setTimeout(wait, 50));
  }
}

async function pauseAt(page, seconds) {
  await until("a run", async () => page.sessions?.length);
  await page.locator(".transport input[type=range]").evaluate((range, value) => {
    range.value = String(value);
    range.dispatchEvent(new Event("change"));
  }, seconds);
  await until(`a pause at ${seconds} s`, async () => {
    const { state } = await session(page);
    return state.phase === "paused" && Math.abs(state.now_s - seconds) < 0.06;
  });
}

/** What a chart's CSV has, as [series, time, value]. */
async function saved(page, title, place = 0) {
  const one = chart(page, title, place);
  await one.locator("summary").click();
  const [file] = await Promise.all([page.waitForEvent("download"), one.getByRole("button", { name: "CSV" }).click()]);
  return rows(readFileSync(await file.path(), "utf8")).slice(1).map(([series, time, value]) => [series, Number(time), value === "" ? NaN : Number(value)]);
}

async function table(page, of, name, place = -1) {
  const [header, ...lines] = rows(await (await api(`sessions/${page.sessions.at(place)}/table?of=${of}&name=${encodeURIComponent(name)}&format=csv`)).text());
  return { column: (name) => lines.map((line) => (line[header.indexOf(name)] === "" ? NaN : Number(line[header.indexOf(name)]))), header };
}

/** Values of the page, which has 32 bits for each, against the engine's. */
function near(found, expected, what) {
  assert.equal(found.length, expected.length, `${what}: number of values`);
  found.forEach((value, index) => {
    const other = expected[index];
    if (Number.isNaN(value) && Number.isNaN(other)) return;
    assert.ok(Math.abs(value - other) <= 2e-7 * Math.abs(other) + 1e-9, `${what}, value ${index}: ${value} on the page, ${other} of the engine`);
  });
}

/** How each view is looked at. */
const LOOKS = [["light", {}], ["dark", { colorScheme: "dark" }], ["narrow", { viewport: { width: 380, height: 2400 } }]];

/** A view is kept as a screenshot, and has no fault that a checker finds. */
async function looked(page, view, look) {
  await page.screenshot({ path: join(pictures, `${view}-${look}.png`) });
  await accessible(page, `${view}, ${look}`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(width <= 0, `${view}, ${look}: the page is ${width} pixels wider than the window`);
  assert.deepEqual(page.faults, [], `${view}, ${look}`);
}

async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).slice(0, 3).join(" ")}`), [], what);
}

const tests = {
  async "the first picture comes by itself, and shows the engine's figures"() {
    const begun = Date.now();
    const page = await open();
    await chart(page, "Rate against capacity").locator("canvas").waitFor();
    const first = Date.now() - begun;
    await until("figures", async () => /\d/.test(await chart(page, "Rate against capacity").locator("output").first().textContent()));
    console.log(`    first picture after ${first} ms`);
    await pauseAt(page, 4);
    for (const [title, column, factor] of [["Rate against capacity", "goodput_bit_s", 1e-6], ["Queueing delay", "queueing_delay_mean_s", 1e3], ["Round-trip time", "srtt_s", 1e3], ["Congestion window", "cwnd_bytes", 1e-3]]) {
      const values = await saved(page, title);
      for (const { name } of (await session(page)).about.flows) {
        const engine = await table(page, "flow", name);
        const mine = values.filter(([series]) => series === name);
        near(mine.map(([, time]) => time), engine.column("time_s"), `${title} of ${name}: time`);
        near(mine.map(([, , value]) => value), engine.column(column).map((value) => value * factor), `${title} of ${name}`);
      }
    }
    const user = (await session(page)).about.users[0].name;
    const cqi = (await saved(page, "CQI and MCS")).filter(([series]) => series === "CQI");
    near(cqi.map(([, , value]) => value), (await table(page, "user", user)).column("cqi"), "CQI");
    // The readings under the chart's cursor are those of the same time.
    const plot = chart(page, "Queueing delay").locator(".plot");
    const at = await until("the cursor before the end", async () => {
      // Keys that are pressed while the chart is made anew are lost.
      await plot.focus();
      await page.keyboard.press("End");
      await page.keyboard.press("Shift+ArrowLeft");
      const now = Number(await plot.getAttribute("aria-valuenow"));
      return now < 3.9 && now;
    });
    const engine = await table(page, "flow", "download");
    const place = engine.column("time_s").findLastIndex((time) => time <= at + 1e-6);
    const reading = Number(await chart(page, "Queueing delay").locator("output").first().textContent());
    assert.ok(Math.abs(reading - engine.column("queueing_delay_mean_s")[place] * 1e3) <= 0.001 * reading + 1e-3, `${reading} at ${at} s`);
    return page;
  },

  async "pictures are saved as PNG and SVG"() {
    const page = await open();
    await pauseAt(page, 2);
    const one = chart(page, "Round-trip time");
    await one.locator("canvas").waitFor();
    for (const [name, head] of [["PNG", "\x89PNG"], ["SVG", "<svg"]]) {
      await one.locator("summary").click();
      const [file] = await Promise.all([page.waitForEvent("download"), one.getByRole("button", { name }).click()]);
      assert.ok(readFileSync(await file.path(), "latin1").startsWith(head), name);
    }
    return page;
  },

  async "play, pause, step, speed and seek, by mouse and by keyboard"() {
    const page = await open();
    await pauseAt(page, 3);
    await button(page, "Step").click();
    await until("a step of a row", async () => Math.abs((await session(page)).state.now_s - 3.05) < 0.02);
    await button(page, "+1 s").click();
    await until("a step of a second", async () => Math.abs((await session(page)).state.now_s - 4.05) < 0.06);
    await page.locator("main").press(" ");
    await until("playing", async () => (await session(page)).state.phase === "playing");
    await page.locator("select[name=speed]").selectOption("10");
    await until("ten times", async () => (await session(page)).state.speed === 10);
    await page.locator("main").press(" ");
    await until("paused", async () => (await session(page)).state.phase === "paused");
    await page.locator("select[name=speed]").selectOption("most");
    await button(page, "Play").click();
    await until("the end", async () => (await session(page)).state.phase === "ended", 60_000);
    await button(page, "Again").waitFor();
    await pauseAt(page, 1);
    const times = (await saved(page, "Queueing delay")).map(([, time]) => time);
    assert.ok(Math.max(...times) < 1.1, "after a jump back the charts end there");
    return page;
  },

  async "users are moved by dragging and by keys"() {
    const page = await open();
    await pauseAt(page, 2);
    const phone = page.locator('.live [data-user="phone"]');
    // At once: a map that is drawn anew replaces the element that a wait for stability holds.
    await phone.evaluate((element) => element.scrollIntoView({ block: "center" }));
    const box = await phone.locator("circle").last().boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + 40, box.y + 30, { steps: 5 });
    await page.mouse.up();
    await until("a change", async () => (await session(page)).about.changes.length === 1);
    await button(page, "+1 s").click();
    await until("the rows after it", async () => (await session(page)).state.now_s > 2.9);
    const moved = (await table(page, "user", "phone")).column("x_m").at(-1);
    assert.ok(moved > 320, `moved to ${moved} m`);
    await phone.focus();
    await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await until("another change", async () => (await session(page)).about.changes.length === 2);
    await button(page, "+1 s").click();
    await until("the rows after it", async () => (await session(page)).state.now_s > 3.9);
    const { column } = await table(page, "user", "phone");
    assert.ok(Math.abs(column("x_m").at(-1) - (moved - 110)) < 2, `${column("x_m").at(-1)} m, 110 m from ${moved}`);
    return page;
  },

  async "flows are added, changed and stopped; the scenario gives the same run"() {
    const page = await open();
    await pauseAt(page, 2);
    const flows = page.locator('details[data-part="flows"]');
    await flows.locator("summary", { hasText: "Add a flow now" }).click();
    const fresh = flows.locator("details.flow").last();
    await fresh.getByLabel("Congestion control").selectOption("bbr1");
    await fresh.getByRole("button", { name: "Add" }).click();
    await until("a third flow", async () => (await session(page)).about.flows.length === 3);
    await button(page, "+1 s").click();
    const first = flows.locator('details.flow[data-flow="download"]');
    await first.locator("summary").first().click();
    await first.locator("summary", { hasText: "Decorators" }).click();
    await first.locator("label.check", { hasText: "c2tcp" }).locator("input").check();
    // Fields, the typed form and the engine agree; what the engine refuses stands at its field.
    const target = first.getByLabel("target", { exact: true });
    await target.fill("50");
    const typed = first.getByLabel("As written");
    assert.equal(await typed.inputValue(), "cubic+c2tcp:target=50ms");
    await typed.fill("cubic+c2tcp:alpha=0.5:target=60ms:friendliness=off");
    assert.deepEqual([await target.inputValue(), await first.getByLabel("alpha", { exact: true }).inputValue()], ["60", "0.5"]);
    assert.equal(await first.getByRole("switch", { name: /^friendliness/ }).isChecked(), false);
    await first.locator(".field", { has: page.getByLabel("alpha", { exact: true }) }).locator(".error", { hasText: "from 1 to 100" }).waitFor();
    await first.getByLabel("alpha", { exact: true }).fill("");
    await first.getByRole("switch", { name: /^friendliness/ }).check();
    await target.fill("50");
    await until("no error", async () => (await first.locator(".error:not(:empty)").count()) === 0);
    assert.equal(await typed.inputValue(), "cubic+c2tcp:target=50ms");
    await first.getByRole("button", { name: "Change" }).click();
    await until("a flow in its place", async () => (await session(page)).about.flows.some(({ cc }) => cc === "cubic+c2tcp:target=50ms"));
    await button(page, "+1 s").click();
    const second = flows.locator('details.flow[data-flow="pages"]');
    await second.locator("summary").first().click();
    await second.getByRole("button", { name: "Stop this flow" }).click();
    await until("a stop", async () => (await session(page)).about.flows.find(({ name }) => name === "pages").stop_s !== null);
    // It is taken home as a file; the command gives the figures that the page shows.
    await pauseAt(page, 8);
    const [file] = await Promise.all([page.waitForEvent("download"), button(page, "Scenario").click()]);
    const path = join(folder, "taken-home.toml");
    writeFileSync(path, readFileSync(await file.path()));
    run("run", path, "--out", "home");
    await pauseAt(page, 59.9);
    await button(page, "Play").click();
    await until("the end", async () => (await session(page)).state.phase === "ended");
    const { about } = await session(page);
    const { runs } = await (await api(`results?path=${encodeURIComponent(`home/${about.name}`)}`)).json();
    for (const [place, { name }] of about.flows.entries()) {
      const [header, ...lines] = rows(await (await api(`results/series?path=${encodeURIComponent(runs[0].path)}&table=flow-${place}&format=csv`)).text());
      const mine = await table(page, "flow", name);
      for (const column of ["time_s", "delivered_bytes", "cwnd_bytes", "queueing_delay_mean_s"]) {
        const engine = lines.map((line) => line[header.indexOf(column)]).map((text) => (text === "" ? NaN : Number(text)));
        assert.deepEqual(mine.column(column), engine, `${column} of ${name}`);
      }
    }
    return page;
  },

  async "the feed breaks, a link changes, and the page counts the changes"() {
    const page = await open();
    await pauseAt(page, 2);
    await page.locator('details[data-part="feed"] > summary').click();
    await page.locator('button[data-content="none"]').click();
    await until("a break", async () => (await session(page)).about.changes.length === 1);
    await page.locator('details[data-part="links"] > summary').click();
    const rate = page.locator('details[data-part="links"]').getByLabel("Rate, Mbit/s").first();
    await rate.fill("5");
    await rate.press("Enter");
    await until("a rate", async () => (await session(page)).about.changes.length === 2);
    assert.equal(await page.locator("ol.changes li").count(), 2);
    assert.match(await scenario(page), /5Mbit\/s|5000kbit\/s/);
    return page;
  },

  async "two runs stand beside each other with the same seed"() {
    const page = await open();
    await pauseAt(page, 1);
    await button(page, "Compare…").click();
    const dialog = page.locator("dialog");
    await dialog.getByLabel("Congestion control").selectOption("bbr1");
    await dialog.getByRole("button", { name: "Play both from 0" }).click();
    await until("two panels", async () => (await page.locator(".panel").count()) === 2 && page.sessions.length === 3);
    await until("two runs", async () => (await session(page, -1)).state.now_s > 0 && (await session(page, -2)).state.now_s > 0);
    const [a, b] = [await session(page, -2), await session(page, -1)];
    assert.equal(a.about.seed, b.about.seed);
    const controls = [a, b].map(({ about }) => about.flows.map(({ cc }) => cc).join());
    assert.deepEqual(controls.sort(), ["bbr1,bbr1", "cubic,cubic"]);
    // Both wait at the same time, however they came there.
    await pauseAt(page, 5);
    const same = async (what, least) =>
      until(what, async () => {
        const [first, second] = [(await session(page, -2)).state, (await session(page, -1)).state];
        return first.phase === "paused" && second.phase === "paused" && Math.abs(first.now_s - second.now_s) < 1e-9 && first.now_s > least;
      });
    await page.locator("select[name=speed]").selectOption("2");
    await button(page, "Play").click();
    await until("both go on", async () => (await session(page, -1)).state.now_s > 5.5);
    await button(page, "Pause").click();
    await same("a pause of both at one time", 5.5);
    const before = (await session(page, -1)).state.now_s;
    await button(page, "+1 s").click();
    await same("a step of both", before + 0.9);
    // The table has the engine's figures, and their ratio.
    const row = page.locator(".differences tbody tr", { hasText: "Goodput" }).first();
    const goodputs = await Promise.all([-2, -1].map(async (place) => (await table(page, "flow", a.about.flows[0].name, place)).column("goodput_bit_s")));
    const [own, other] = goodputs.map((values) => values.reduce((sum, value) => sum + value, 0) / values.length / 1e6);
    await until("figures of all rows", async () => {
      const shown = (await row.locator("td").allTextContents()).map(Number);
      const near = [own, other, other / own];
      // The panels may have come in either order.
      const turned = [other, own, own / other];
      return [near, turned].some((expected) => expected.every((value, index) => Math.abs(shown[index] - value) <= 2e-3 * value));
    });
    await page.screenshot({ path: join(pictures, "beside.png") });
    return page;
  },

  async "a recording of one's own is uploaded and played"() {
    const page = await open();
    await page.locator(".side > details > summary").click();
    await page.locator(".tab", { hasText: "Recording" }).click();
    await page.getByLabel("Add a recording of your own").setInputFiles({ name: "mine.down", mimeType: "text/plain", buffer: Buffer.from(RECORDING) });
    await until("the recording", async () => /mine/.test((await page.getByLabel("Towards the phone").inputValue()) ?? ""));
    await button(page, "Play from 0").click();
    await until("a run of it", async () => page.sessions.length >= 2 && (await scenario(page)).includes("mine"));
    await pauseAt(page, 3);
    const capacity = (await saved(page, "Rate against capacity")).filter(([series]) => series.startsWith("capacity"));
    assert.ok(Math.abs(capacity.at(-1)[2] - 12) < 0.3, `capacity ${capacity.at(-1)[2]} Mbit/s of a recording of 12 Mbit/s`);
    return page;
  },

  async "a link of fixed rate is played, and a scenario with mistakes says where they are"() {
    const page = await open();
    await page.locator(".side > details > summary").click();
    await page.locator(".tab", { hasText: "Link" }).click();
    await page.getByLabel("Rate, Mbit/s").first().fill("6");
    await button(page, "Play from 0").click();
    await until("a run of 6 Mbit/s", async () => page.sessions.length >= 2);
    await pauseAt(page, 3);
    const capacity = (await saved(page, "Rate against capacity")).filter(([series]) => series.startsWith("capacity"));
    assert.ok(Math.abs(capacity.at(-1)[2] - 6) < 0.01, `capacity ${capacity.at(-1)[2]}`);
    await page.locator(".tab", { hasText: "Scenario" }).click();
    await page.getByLabel("Text", { exact: true }).fill('duration = "10s"\nwarmpu = "1s"\n');
    await button(page, "Play from 0").click();
    assert.match(await page.locator(".mistakes").textContent(), /line 2/);
    await page.getByLabel("An example").selectOption("drive");
    await button(page, "Play from 0").click();
    await until("the example", async () => page.sessions.length >= 3);
    assert.match(await scenario(page), /24Mbit\/s/);
    return page;
  },

  async "a link of the page holds its state"() {
    const page = await open();
    await pauseAt(page, 2);
    await page.locator('.live [data-user="tablet"]').focus();
    await page.keyboard.press("Shift+ArrowUp");
    await until("a change", async () => (await session(page)).about.changes.length === 1);
    await pauseAt(page, 3);
    await button(page, "Copy link").click();
    await page.locator(".announcements p", { hasText: "link is in" }).waitFor();
    const text = await scenario(page);
    const other = await open(page.url().slice(address.length));
    await until("its run, waiting at 3 s", async () => {
      if (!other.sessions?.length) return false;
      const { state } = await session(other);
      return state.phase === "paused" && Math.abs(state.now_s - 3) < 0.06;
    });
    assert.equal(await scenario(other), text);
    near((await saved(other, "Queueing delay")).map(([, , value]) => value), (await saved(page, "Queueing delay")).map(([, , value]) => value), "the same figures");
    await other.context().close();
    return page;
  },

  async "a closed tab ends its run"() {
    const page = await open();
    await until("a run", async () => page.sessions?.length);
    const [id] = page.sessions;
    await page.context().close();
    await until("its end", async () => (await fetch(new URL(`api/sessions/${id}`, address))).status === 404, 30_000);
  },

  async "results: folders, filters, the Pareto front, runs over time, distributions, downloads"() {
    const page = await open("#/results");
    await page.getByRole("link", { name: "compare/" }).click();
    const runs = page.locator('section.card[aria-label="Runs"]');
    await runs.waitFor();
    const stored = await (await api("results?path=compare")).json();
    assert.equal(await runs.locator("tbody tr").count(), 4);
    await runs.getByLabel("Filter Runs").fill("vegas");
    assert.equal(await runs.locator("tbody tr").count(), 2);
    assert.equal(await runs.locator("svg.scatter path[data-row]").count(), 2, "the filter counts in the picture, too");
    await runs.getByLabel("Filter Runs").fill("");
    await runs.getByRole("button", { name: /^Goodput/ }).click();
    const shown = await runs.locator("tbody tr td:nth-child(6)").allTextContents();
    const goodputs = stored.runs.flatMap(({ flows }) => flows).map(({ goodput_bit_s }) => goodput_bit_s / 1e6).sort((a, b) => a - b);
    shown.forEach((text, index) => assert.ok(Math.abs(Number(text) - goodputs[index]) < 0.001 * goodputs[index], `${text}, ${goodputs[index]}`));
    await runs.locator("tbody input").first().check();
    await chart(page, "Rate").locator("canvas").waitFor();
    await runs.locator("tbody input").nth(3).check();
    await until("two runs", async () => (await page.locator("h2", { hasText: "2 runs" }).count()) === 1);
    await chart(page, "Queueing delay").locator("canvas").waitFor();
    const values = await saved(page, "Queueing delay");
    for (const path of new URL(page.url().replace("#/", "")).searchParams.getAll("run")) {
      const [header, ...lines] = rows(await (await api(`results/series?path=${encodeURIComponent(path)}&table=flow-0&format=csv`)).text());
      const run = await (await api(`results/run?path=${encodeURIComponent(path)}`)).json();
      const label = `${run.about.flows[0].name} (${run.about.flows[0].cc}), seed ${run.about.seed}`;
      const engine = lines.map((line) => line[header.indexOf("queueing_delay_mean_s")]).map((text) => (text === "" ? NaN : Number(text) * 1e3));
      near(values.filter(([series]) => series === label).map(([, , value]) => value), engine, label);
    }
    // Zoom and cursor are common.
    const box = await chart(page, "Rate").locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 });
    await page.mouse.up();
    const zoomed = (await saved(page, "Round-trip time")).map(([, time]) => time);
    assert.ok(Math.min(...zoomed) > 1 && Math.max(...zoomed) < 2.8, `${Math.min(...zoomed)} to ${Math.max(...zoomed)} s`);
    await chart(page, "RTT: share").scrollIntoViewIfNeeded();
    await chart(page, "RTT: share").locator("canvas").waitFor();
    await page.locator(".results details.card > summary").first().click();
    const [parquet] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Parquet" }).first().click()]);
    assert.ok(readFileSync(await parquet.path(), "latin1").startsWith("PAR1"));
    await page.reload();
    await until("the same runs", async () => (await page.locator("h2", { hasText: "2 runs" }).count()) === 1);
    await button(page, "Play this scenario").first().click({ trial: true }).catch(() => {});
    await page.locator(".results details.card > summary").first().click();
    await button(page, "Play this scenario").first().click();
    await until("a run of it", async () => page.sessions?.length);
    return page;
  },

  async "a run that is kept is among the results"() {
    const page = await open();
    await pauseAt(page, 1);
    await button(page, "Keep").click();
    const note = page.locator(".announcements p", { hasText: "Kept" });
    await note.waitFor({ timeout: 60_000 });
    const path = /Kept: (.*)\. It is/.exec(await note.textContent())[1];
    const stored = await (await api(`results/run?path=${encodeURIComponent(path)}`)).json();
    assert.equal(stored.text, await scenario(page));
    return page;
  },

  async "reproductions stand with what was published"() {
    const page = await open("#/gallery");
    const all = await (await api("reproductions")).json();
    assert.ok(all.length > 10);
    await until("all of them", async () => (await page.locator(".experiment").count()) === all.length);
    await page.getByLabel("Filter the experiments").fill("SIGMA upload");
    const found = await page.locator(".experiment").count();
    assert.ok(found > 0 && found < all.length);
    await page.locator(".experiment summary").first().click();
    assert.ok((await page.locator(".experiment[open] tbody tr").count()) > 0);
    return page;
  },

  async "each step of each tour plays what it says"() {
    const page = await open("#/tours");
    const links = await page.getByRole("link", { name: /^Begin/ }).evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.equal(links.length, 5);
    for (const link of links) {
      await page.evaluate((hash) => (location.hash = hash), link);
      for (let step = 1; ; step += 1) {
        await page.locator(".tour").waitFor();
        await until(`step ${step} of ${link}`, async () => page.sessions?.length && (await page.locator(".looked-at").count()) > 0 && ["playing", "ended"].includes(await page.locator(".transport .primary").getAttribute("data-phase")), 60_000);
        const faults = await page.locator(".announcements .error").allTextContents();
        assert.deepEqual(faults, [], `${link}, step ${step}`);
        await page.waitForTimeout(700);
        await page.screenshot({ path: join(pictures, `tour-${/tour=([a-z0-9-]+)/.exec(link)[1]}-${step}.png`) });
        const next = page.locator(".tour").getByRole("button", { name: "Next" });
        if ((await next.count()) === 0) break;
        await next.click();
        await page.waitForTimeout(300);
      }
      await page.evaluate(() => (location.hash = "#/tours"));
      await page.locator(".tours").waitFor();
    }
    return page;
  },

  async "an emulation that runs is found, and watched with its own figures"() {
    if (process.getuid() !== 0) {
      assert.notEqual(process.env.RANPACE_NO_SKIP, "1", "an emulation that others see needs root");
      return console.log("    skipped: an emulation that others see needs root");
    }
    const emulation = startEmulation(ranpace, folder);
    try {
      await until("its status", async () => (await (await api("live")).json()).some((source) => source.address === emulation.address));
      for (const [look, options] of LOOKS) {
        const page = await open("#/live", options);
        const source = page.locator("ul.sources li", { hasText: emulation.address }).getByRole("link");
        assert.match(await source.textContent(), /^emulation/);
        await source.click();
        await chart(page, "Rate against capacity").locator("canvas").waitFor();
        await until("ten rows", async () => (await table(page, "flow", "download")).column("time_s").length > 10);
        await until("pages of the walker", async () => (await session(page)).about.users.length === 2);
        await page.waitForTimeout(1500);
        await looked(page, "emulation", look);
        if (look !== "light") {
          await page.context().close();
          continue;
        }
        // The picture stands still, and has the engine's figures of these times.
        await button(page, "Pause the picture").click();
        for (const [title, of, column, factor] of [["Rate against capacity", "download", "goodput_bit_s", 1e-6], ["Round-trip time", "download", "srtt_s", 1e3], ["CQI and MCS", "phone", "mcs", 1]]) {
          const label = column === "mcs" ? "MCS" : of;
          const mine = (await saved(page, title)).filter(([series]) => series === label);
          assert.ok(mine.length > 5, `${title}: ${mine.length} values`);
          const engine = await table(page, column === "mcs" ? "user" : "flow", of);
          const times = engine.column("time_s");
          const values = engine.column(column);
          const expected = mine.map(([, time]) => values[times.findIndex((other) => Math.abs(other - time) < 1e-6)] * factor);
          near(mine.map(([, , value]) => value), expected, title);
        }
        const last = async () => (await saved(page, "Rate against capacity")).at(-1)[1];
        const before = await last();
        await page.waitForTimeout(700);
        assert.equal(await last(), before, "a picture that stands still");
        await button(page, "Go on").click();
        await until("newer rows", async () => (await last()) > before);
        // Nothing can be changed here.
        assert.equal(await button(page, "Compare…").count(), 0);
        assert.equal(await page.locator(".live button").count(), 0);
        await page.context().close();
      }
      const page = await open(`#/live?${new URLSearchParams({ address: emulation.address })}`);
      await chart(page, "Rate against capacity").locator("canvas").waitFor();
      await emulation.end();
      await page.locator(".head .fault", { hasText: "does it run?" }).waitFor();
      assert.ok((await table(page, "flow", "download")).column("time_s").length > 10, "its rows stay");
      return page;
    } finally {
      await emulation.end();
    }
  },

  async "a server of files is watched by its address; where nothing answers, that is said"() {
    const server = await startServer(ranpace, folder);
    try {
      const page = await open("#/live");
      const typed = page.getByLabel("Address");
      await typed.fill("127.0.0.1:1");
      await typed.press("Enter");
      await page.locator(".head .fault", { hasText: "does it run?" }).waitFor();
      await typed.fill("192.0.2.1:80");
      await button(page, "Watch").click();
      await page.locator(".head .fault", { hasText: "--attach 192.0.2.1:80" }).waitFor();
      // What is refused is an answer with a status, which the browser notes.
      page.faults = page.faults.filter((fault) => !/status of (403|409)/.test(fault));
      await typed.fill(server.address);
      await typed.press("Enter");
      await chart(page, "Congestion window").locator("canvas").waitFor();
      const name = await until("a download", async () => (await session(page)).about.flows[0]?.name);
      await until("its rows", async () => (await table(page, "flow", name)).column("cwnd_bytes").length > 5);
      await button(page, "Pause the picture").click();
      const mine = (await saved(page, "Congestion window")).filter(([series]) => series === name);
      const engine = await table(page, "flow", name);
      const times = engine.column("time_s");
      const expected = mine.map(([, time]) => engine.column("cwnd_bytes")[times.findIndex((other) => Math.abs(other - time) < 1e-6)] * 1e-3);
      near(mine.map(([, , value]) => value), expected, "cwnd");
      assert.ok(mine.length > 3, `${mine.length} values`);
      return page;
    } finally {
      await server.end();
    }
  },

  async "views are accessible, in light, in dark and when narrow"() {
    for (const [name, options] of LOOKS) {
      for (const [view, hash, ready] of [
        ["play", "", ".chart canvas"],
        ["setup", "", ".chart canvas"],
        ["results", "#/results?path=compare", ".scatter path"],
        ["gallery", "#/gallery", ".experiment"],
        ["tours", "#/tours", ".tours a"],
        ["tour", "#/play?tour=c2tcp&step=1", ".looked-at"],
        ["live", "#/live", ".sources, .side .hint"],
      ]) {
        const page = await open(hash, options);
        await page.locator(ready).first().waitFor();
        if (view === "setup") {
          await page.locator(".side > details > summary").click();
          await page.locator(".setup details.flow > summary").first().click();
          await page.locator(".setup details.flow details > summary").first().click();
        }
        if (hash === "") await pauseAt(page, 6);
        await page.waitForTimeout(600);
        await looked(page, view, name);
        await page.context().close();
      }
    }
  },

  async "charts live at full speed leave the page responsive"() {
    const page = await open();
    await pauseAt(page, 1);
    await page.evaluate(() => {
      globalThis.long = [];
      new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
    });
    await button(page, "Play").click();
    await page.waitForTimeout(8000);
    const long = await page.evaluate(() => globalThis.long);
    const drawn = await page.locator(".chart canvas").count();
    console.log(`    ${drawn} charts, tasks over 50 ms: ${long.map((duration) => Math.round(duration)).join(", ") || "none"}`);
    assert.ok(drawn >= 10, `${drawn} charts`);
    // A machine that does other things preempts the browser, and its pauses count as tasks. LAB_LONG_TASKS=0 is for an idle one.
    const most = process.env.LAB_LONG_TASKS;
    assert.ok(most === undefined ? Math.max(0, ...long) < 500 : long.length <= Number(most), `tasks over 50 ms: ${long.join(", ")}`);
    return page;
  },

  async "a million points are drawn in 100 ms"() {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
    await useBuilt(context);
    const page = await context.newPage();
    page.faults = [];
    // Vegas has few columns: the browser's protocol takes no more than 100 MB at once.
    const run = (await (await api("results?path=compare")).json()).runs.find(({ flows }) => flows[0].cc === "vegas");
    const { tables } = await (await api(`results/run?path=${encodeURIComponent(run.path)}`)).json();
    const columns = tables.find(({ name }) => name === "flow-0").columns.filter((name) => name !== "time_s").length;
    const count = 1_000_000;
    const body = Buffer.alloc(32 + 8 * count + 4 * count * columns);
    body.write("RPL1");
    [3, 0, 0, count, columns].forEach((value, index) => body.writeUInt32LE(value, 4 + 4 * index));
    const at = new DataView(body.buffer, body.byteOffset);
    for (let row = 0; row < count; row += 1) {
      at.setFloat64(32 + 8 * row, row / 5e4, true);
      for (let column = 0; column < columns; column += 1) at.setFloat32(32 + 8 * count + 4 * (count * column + row), Math.sin(row / 1e4) + Math.random() + 2, true);
    }
    await page.route(/table=flow-0&format=columns/, (route) => route.fulfill({ body }));
    await page.addInitScript(() => {
      globalThis.frames_ms = [];
      const ask = globalThis.requestAnimationFrame.bind(globalThis);
      globalThis.requestAnimationFrame = (job) =>
        ask((time) => {
          const begun = performance.now();
          job(time);
          globalThis.frames_ms.push(performance.now() - begun);
        });
    });
    await page.goto(`${address}#/results?path=compare&run=${encodeURIComponent(run.path)}`);
    const one = chart(page, "Queueing delay");
    await page.locator("h2", { hasText: "Run of" }).or(page.locator("[role=alert]")).waitFor();
    assert.deepEqual(await page.locator("[role=alert]").allTextContents(), []);
    await one.scrollIntoViewIfNeeded();
    await one.locator("canvas").waitFor();
    await until("the million", async () => Number(await one.locator(".plot").getAttribute("aria-valuemax")) > 19.9);
    const times = [];
    for (let round = 0; round < 5; round += 1) {
      await page.evaluate(() => (globalThis.frames_ms.length = 0));
      await one.locator(".legend button").first().click();
      await one.locator(".legend button").first().click();
      await page.waitForTimeout(300);
      times.push(Math.max(...(await page.evaluate(() => globalThis.frames_ms))));
    }
    const median = times.sort((a, b) => a - b)[2];
    console.log(`    ${count} points: ${median.toFixed(0)} ms`);
    assert.ok(median < 100, `${median} ms`);
    return page;
  },
};

let failed = 0;
/** Runs a test; returns whether it passed. */
async function passes(name, test) {
  const begun = Date.now();
  try {
    const page = await test();
    if (page) assert.deepEqual(page.faults, [], "faults of the page");
    console.log(`ok    ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    return true;
  } catch (fault) {
    console.log(`FAILED ${name}\n${fault.stack}`);
    for (const context of browser.contexts()) for (const [place, open] of context.pages().entries()) await open.screenshot({ path: join(pictures, `failed-${failed}-${place}.png`) }).catch(() => {});
    return false;
  } finally {
    for (const context of browser.contexts()) await context.close();
  }
}
for (const [name, test] of Object.entries(tests)) {
  if (!name.includes(filter)) continue;
  // What a busy machine makes late is repeated once.
  if (!(await passes(name, test)) && !(await passes(`${name}, again`, test))) failed += 1;
}
await browser.close();
lab.stop();
rmSync(folder, { recursive: true, force: true });
console.log(failed ? `${failed} failed` : "all passed");
process.exitCode = failed ? 1 : 0;

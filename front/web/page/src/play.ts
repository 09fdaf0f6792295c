// The view in which runs are played.

import { announce, download, field, h, inline, replace, select } from "./dom";
import { ask, expand, squeeze } from "./api";
import { Pairs } from "./chart";
import { number } from "./columns";
import { ControlEditor } from "./control";
import { Differences } from "./differences";
import { Panel, type PanelHost } from "./panel";
import { address, note, type Shown } from "./route";
import type { RunEvent } from "./run";
import { check, FIRST_BUILD, Setup, type Plan } from "./setup";
import { TOURS, type Tour, type TourStep } from "./tours";
import type { Action, Controls, Edit, Saved, Sources, Speed } from "./types";
import { TimeView } from "./view";

/** What a link to this view holds. */
interface Shared {
  plan: Plan;
  /** The text that is played, if changes were made after the plan. */
  text?: string;
  /** The text of the run beside. */
  beside?: string;
  speed?: Speed;
  /** Where the run waits; it plays if there is none. */
  at_s?: number;
}

const SPEEDS: readonly Speed[] = [0.1, 0.5, 1, 2, 5, 10, 50, "most"];
const WINDOWS: readonly (readonly [string, string])[] = [
  ["", "all"],
  ["5", "the last 5 s"],
  ["10", "the last 10 s"],
  ["20", "the last 20 s"],
  ["60", "the last 60 s"],
];

export class Play implements Shown {
  readonly element = h("div", { class: "play" });
  private readonly view = new TimeView();
  private readonly pairs = new Pairs();
  private readonly livePlace = h("div", {});
  private readonly setupPlace = h("details", { class: "card" }, h("summary", {}, "What to play"));
  private readonly transport = h("div", { class: "transport", role: "toolbar", "aria-label": "Play" });
  private readonly panelsPlace = h("div", { class: "panels" });
  private readonly tourPlace = h("div", {});
  private controls!: Controls;
  private setup!: Setup;
  private panels: Panel[] = [];
  private differences: Differences | undefined;
  private plan: Plan = { build: FIRST_BUILD };
  private speed: Speed = 1;
  private changed = false;
  private mirror = true;
  private tour: { tour: Tour; step: number } | undefined;
  /** Counts beginnings: one that comes later overtakes one that still waits for the server. */
  private turn = 0;
  private readonly parts = {
    play: h("button", { type: "button", class: "primary", onclick: () => this.toggle() }),
    time: h("output", { class: "time" }),
    seek: h("input", { type: "range", min: 0, max: 60, step: 0.1, value: 0, "aria-label": "Time in the run, s" }),
    reached: h("output", { class: "hint" }),
    mirror: h("label", { class: "check", hidden: true }),
  };
  private readonly keys = (event: KeyboardEvent) => this.key(event);

  constructor() {
    this.element.append(h("div", { class: "head" }, this.tourPlace, this.transport), h("aside", { class: "side", "aria-label": "Settings" }, this.setupPlace, this.livePlace), this.panelsPlace);
  }

  async open(params: URLSearchParams): Promise<void> {
    const squeezed = params.get("s");
    // The first run's text is asked for beside the lists, so that its picture comes earlier; what fails is told where it is awaited.
    const first = squeezed || params.get("tour") ? undefined : check({ build: FIRST_BUILD });
    first?.catch(() => undefined);
    if (!this.controls) {
      const [controls, sources] = await Promise.all([ask<Controls>("GET", "controls"), ask<Sources>("GET", "sources")]);
      this.controls = controls;
      this.setup = new Setup(
        sources,
        controls,
        this.plan,
        (plan, text) => this.fresh(plan, text),
        async () => {
          const run = this.panels[0]?.run;
          if (!run) throw new Error("No run is there; play one first.");
          return run.text();
        },
      );
      this.setupPlace.append(this.setup.element);
      this.drawTransport();
      document.addEventListener("keydown", this.keys);
    }
    const tour = TOURS.find(({ name }) => name === params.get("tour"));
    if (tour) {
      await this.showStep(tour, Math.min(Math.max(1, Number(params.get("step")) || 1), tour.steps.length) - 1);
      return;
    }
    this.leaveTour();
    let shared: Shared = { plan: { build: FIRST_BUILD } };
    if (squeezed) {
      try {
        shared = JSON.parse(await expand(squeezed)) as Shared;
      } catch {
        announce("This link is incomplete: it may have been cut when it was copied. Here is the first run instead.", "error");
      }
    }
    this.speed = shared.speed ?? 1;
    this.setup.adopt(shared.plan);
    try {
      const text = shared.text ?? (await (first ?? check(shared.plan))).text;
      await this.begin(shared.plan, [text, ...(shared.beside ? [shared.beside] : [])], shared.at_s);
      this.changed = shared.text !== undefined;
    } catch (fault) {
      this.fail(fault);
    }
  }

  destroy(): void {
    this.turn += 1;
    this.differences?.destroy();
    document.removeEventListener("keydown", this.keys);
    for (const panel of this.panels) panel.destroy();
    this.panels = [];
  }

  restyle(): void {
    for (const panel of this.panels) panel.restyle();
  }

  // ---- beginning ----

  private async fresh(plan: Plan, text: string): Promise<void> {
    this.leaveTour();
    this.changed = false;
    await this.begin(plan, [text]);
    void this.noteState();
  }

  /** Begins the runs of these texts, one beside the other. */
  private async begin(plan: Plan, texts: readonly string[], at_s?: number, titles?: readonly string[]): Promise<void> {
    this.turn += 1;
    const { turn } = this;
    this.plan = plan;
    for (const panel of this.panels) panel.destroy();
    this.panels = [];
    this.view.restart();
    const host: PanelHost = {
      controls: this.controls,
      view: this.view,
      pairs: this.pairs,
      changed: (panel, event) => this.hear(panel, event),
      laidOut: () => this.markCharts(),
      edited: (panel, edit) => this.repeat(panel, edit),
    };
    const panels = texts.map((_, index) => new Panel(texts.length === 1 ? "" : (titles?.[index] ?? ["Run A", "Run B"][index]!), host));
    this.panels = panels;
    this.parts.mirror.hidden = texts.length < 2;
    this.panelsPlace.classList.toggle("two", texts.length > 1);
    this.differences?.destroy();
    this.differences = panels.length === 2 ? new Differences(() => this.panels.map(({ run }) => run), panels.map(({ title }) => title), this.view) : undefined;
    replace(this.panelsPlace, this.differences?.element, panels.map(({ element }) => element));
    replace(this.livePlace, panels.map(({ live }) => live));
    try {
      // All wait until all are there.
      await Promise.all(panels.map((panel, index) => panel.begin(texts[index]!, texts.length > 1 || at_s !== undefined, this.speed)));
    } catch (fault) {
      if (turn === this.turn) {
        for (const panel of panels) panel.destroy();
        this.panels = [];
        this.showState();
      }
      throw fault;
    }
    if (turn !== this.turn) {
      // Another beginning has come meanwhile; its panels are in the page.
      for (const panel of panels) panel.destroy();
      return;
    }
    if (at_s !== undefined) await Promise.all(panels.map(({ run }) => run.seek(at_s)));
    else if (texts.length > 1) await this.act({ action: "play" });
    this.showState();
  }

  private fail(fault: unknown): void {
    announce(fault instanceof Error ? fault.message : String(fault), "error");
  }

  // ---- the bar ----

  private drawTransport(): void {
    const { parts } = this;
    parts.seek.addEventListener("change", () => void this.act({ action: "seek", to_s: Number(parts.seek.value) }));
    parts.seek.addEventListener("input", () => (parts.time.textContent = `${number(Number(parts.seek.value))} s`));
    const box = h("input", { type: "checkbox", checked: true, onchange: () => (this.mirror = box.checked) });
    parts.mirror.append(box, h("span", {}, "make each change in both"));
    const speed = select(SPEEDS.map((value) => [String(value), value === "most" ? "as fast as it goes" : `${value} ×`]), String(this.speed), (value) => {
      this.speed = value === "most" ? "most" : Number(value);
      void this.act({ action: "speed", speed: this.speed });
      void this.noteState();
    });
    speed.name = "speed";
    const shown = select(WINDOWS, "", (value) => this.setWindow(value === "" ? undefined : Number(value)));
    shown.name = "window";
    const button = (text: string, title: string, onclick: () => unknown) =>
      h("button", { type: "button", title, onclick: () => void Promise.resolve(onclick()).catch((fault: unknown) => this.fail(fault)) }, text);
    replace(
      this.transport,
      parts.play,
      button("Step", "One row of the series (.)", () => this.act({ action: "step" })),
      button("+1 s", "One second", () => this.act({ action: "step", by_s: 1 })),
      h("span", { class: "seek" }, parts.seek, parts.time, parts.reached),
      inline("Speed", speed),
      inline("Show", shown),
      parts.mirror,
      h(
        "span",
        { class: "buttons" },
        button("Compare…", "The same run with another control beside it", () => this.compare()),
        button("Copy link", "A link to what you see", () => this.copyLink()),
        button("Scenario", "Download the scenario with all changes: `ranpace run` gives the same figures", () => this.downloadScenario()),
        button("Keep", "Keep its results in the server's folder", () => this.save()),
      ),
    );
    this.showState();
  }

  private setWindow(seconds: number | undefined): void {
    this.view.window = seconds;
    this.transport.querySelector<HTMLSelectElement>("select[name=window]")!.value = String(seconds ?? "");
    this.view.reset();
  }

  private get paused(): boolean {
    const phase = this.panels[0]?.run?.state.phase;
    return phase !== "playing" && phase !== "catching_up";
  }

  private toggle(): void {
    const phase = this.panels[0]?.run?.state.phase;
    if (phase === "ended") void this.act({ action: "seek", to_s: 0 }).then(() => this.act({ action: "play" }));
    else void this.act({ action: this.paused ? "play" : "pause" });
  }

  private async act(action: Action): Promise<void> {
    try {
      const isBeside = this.panels.length > 1;
      if (isBeside && action.action === "step") await this.together(action.by_s);
      else await Promise.all(this.panels.map(({ run }) => run.act(action)));
      if (isBeside && action.action === "pause") await this.together(0);
    } catch (fault) {
      this.fail(fault);
    }
  }

  /** Runs beside each other wait at the same time: at the next row of the one that has come farthest, and so much further. */
  private async together(by_s: number | null | undefined): Promise<void> {
    await Promise.all(this.panels.map(({ run }) => run.act({ action: "pause" })));
    const states = await Promise.all(this.panels.map(({ run }) => run.look()));
    const row = Math.max(...this.panels.map(({ run }) => run.session.about.sample_s));
    const farthest = Math.max(...states.map(({ now_s }) => now_s));
    // A row that has just been reached is not passed.
    const to_s = Math.ceil(farthest / row - 1e-6) * row + (by_s ?? row);
    const end = Math.min(...this.panels.map(({ run }) => run.session.about.duration_s));
    await Promise.all(this.panels.map(({ run }) => run.seek(Math.min(to_s, end))));
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, button, summary, dialog, a")) return;
    if (event.key === " ") this.toggle();
    else if (event.key === ".") void this.act({ action: "step" });
    else return;
    event.preventDefault();
  }

  private hear(panel: Panel, event: RunEvent): void {
    if (event === "rows") this.differences?.update();
    if (event === "again") this.view.shrink(Math.max(0, ...this.panels.map(({ run }) => run?.rowTimes().at(-1) ?? 0)));
    if (panel !== this.panels[0] && event !== "gone") return;
    if (event === "gone") announce(panel.run.gone ?? "The run is gone.", "error");
    if (event === "state" && panel.run.state.phase === "failed") announce(panel.run.state.problem, "error");
    if (event === "state" || event === "about" || event === "gone") this.showState();
  }

  private showState(): void {
    const { parts } = this;
    const run = this.panels[0]?.run;
    const state = run?.state;
    const phase = run?.gone !== undefined ? "gone" : state?.phase;
    const words: Record<string, string> = { playing: "Pause", catching_up: "Pause", paused: "Play", ended: "Again", failed: "Failed", gone: "Gone" };
    parts.play.textContent = words[phase ?? ""] ?? "Play";
    parts.play.disabled = !run || phase === "failed" || phase === "gone";
    parts.play.dataset["phase"] = phase ?? "";
    if (!run || !state) return;
    parts.seek.max = String(run.session.about.duration_s);
    if (document.activeElement !== parts.seek || phase === "playing") {
      parts.seek.value = String(state.now_s);
      parts.time.textContent = `${state.now_s.toFixed(1)} of ${number(run.session.about.duration_s)} s`;
    }
    parts.seek.setAttribute("aria-valuetext", `${number(state.now_s)} seconds`);
    parts.reached.textContent = phase === "catching_up" ? "catching up" : phase === "playing" && state.reached > 0 ? `${number(Number(state.reached.toPrecision(2)))} ×` : "";
  }

  private repeat(panel: Panel, edit: Edit): void {
    this.changed = true;
    // A control that one run has need not be in the other.
    if (this.mirror && edit.edit !== "replace_flow" && edit.edit !== "set_target") {
      for (const other of this.panels) if (other !== panel) void other.edit(edit, false).catch(() => undefined);
    }
    void this.noteState();
  }

  // ---- taking it along ----

  private async shared(at_s?: number): Promise<Shared> {
    const texts = await Promise.all(this.panels.map(({ run }) => run.text()));
    return {
      plan: this.plan,
      ...(this.changed && texts[0] !== undefined ? { text: texts[0], plan: { text: texts[0] } } : {}),
      ...(texts[1] !== undefined ? { beside: texts[1] } : {}),
      speed: this.speed,
      ...(at_s === undefined ? {} : { at_s }),
    };
  }

  /** The page's address follows what it shows. */
  private async noteState(): Promise<void> {
    if (this.tour || this.panels.length === 0) return;
    const { turn } = this;
    const squeezed = await squeeze(JSON.stringify(await this.shared()));
    if (turn === this.turn && this.element.isConnected) note("play", new URLSearchParams({ s: squeezed }));
  }

  private async copyLink(): Promise<void> {
    const state = await this.panels[0]?.run.look();
    const at_s = state?.phase === "paused" || state?.phase === "ended" ? state.now_s : undefined;
    const squeezed = await squeeze(JSON.stringify(await this.shared(at_s)));
    const link = address("play", new URLSearchParams({ s: squeezed }));
    this.leaveTour();
    note("play", new URLSearchParams({ s: squeezed }));
    try {
      await navigator.clipboard.writeText(link);
      announce("The link is in the clipboard.");
    } catch {
      announce("The browser does not give access to the clipboard; the link is in its address bar.");
    }
  }

  private async downloadScenario(): Promise<void> {
    for (const { run } of this.panels) download(`${run.session.about.name}.toml`, await run.text(), "application/toml");
  }

  private async save(): Promise<void> {
    for (const { run } of this.panels) {
      const { path } = await ask<Saved>("POST", `sessions/${run.session.id}/save`, {});
      announce(`Kept: ${path}. It is under Results.`);
    }
  }

  // ---- side by side ----

  private async compare(): Promise<void> {
    const first = this.panels[0];
    if (!first) return;
    const text = await first.run.text();
    const controls = [...new Set(first.run.session.about.flows.map(({ cc }) => cc))].filter((cc) => cc !== "udp");
    if (controls.length === 0) throw new Error("No flow of this scenario has a congestion control.");
    const of = select(controls.map((cc) => [cc, cc]), controls[0]!, () => undefined);
    const editor = new ControlEditor(this.controls, controls[0] === "cubic" ? "cubic+c2tcp:target=50ms" : "cubic");
    const dialog = h("dialog", { "aria-label": "Compare", onclose: () => dialog.remove() });
    const go = h("button", {
      type: "button",
      class: "primary",
      onclick: () => {
        dialog.close();
        const beside = withControl(text, of.value, editor.value());
        void this.begin(this.plan, [text, beside], undefined, [`A: ${of.value}`, `B: ${editor.value()}`])
          .then(() => this.noteState())
          .catch((fault: unknown) => this.fail(fault));
      },
    });
    go.textContent = "Play both from 0";
    dialog.append(
      h("h2", {}, "Compare"),
      h("p", { class: "hint" }, "A second run of the same scenario with the same seed, in which another control takes the place of one."),
      field("In place of", of),
      editor.element,
      h("div", { class: "actions" }, go, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    );
    document.body.append(dialog);
    dialog.showModal();
  }

  // ---- tours ----

  private leaveTour(): void {
    this.tour = undefined;
    this.tourPlace.replaceChildren();
    this.markCharts();
  }

  private async showStep(tour: Tour, index: number): Promise<void> {
    const before = this.tour;
    this.tour = { tour, step: index };
    note("play", new URLSearchParams({ tour: tour.name, step: String(index + 1) }));
    this.drawTour(tour, index);
    const step = tour.steps[index]!;
    try {
      const goesOn = before?.tour === tour && before.step === index - 1 && !step.begin && this.panels.length > 0;
      let from = index;
      if (!goesOn) {
        while (from > 0 && !tour.steps[from]!.begin) from -= 1;
        await this.beginStep(tour.steps[from]!);
      }
      const { turn } = this;
      for (const { at_s, edit, run: only } of tour.steps.slice(from, index + 1).flatMap(({ edits }) => edits ?? [])) {
        await Promise.all(this.panels.map(({ run }) => run.seek(at_s)));
        if (turn !== this.turn) return;
        await Promise.all(this.panels.filter((_, place) => only === undefined || only === place).map((panel) => panel.edit(edit, false)));
      }
      await Promise.all(this.panels.map(({ run }) => run.seek(step.from_s)));
      if (turn !== this.turn) return;
      this.speed = step.speed;
      this.setWindow(step.window_s);
      this.transport.querySelector<HTMLSelectElement>("select[name=speed]")!.value = String(step.speed);
      await this.act({ action: "speed", speed: step.speed });
      await this.act({ action: "play" });
      this.lookAt();
    } catch (fault) {
      this.fail(fault);
    }
  }

  private async beginStep(step: TourStep): Promise<void> {
    const plan: Plan = { build: step.begin! };
    this.setup.adopt(plan);
    this.changed = false;
    const { text } = await check(plan);
    const { beside } = step;
    if (beside) await this.begin(plan, [text, withControl(text, beside.cc, beside.by)], 0, [`A: ${beside.cc}`, `B: ${beside.by}`]);
    else await this.begin(plan, [text], 0);
  }

  /** Marks the charts that the step is about. */
  private markCharts(): void {
    const look = this.tour ? this.tour.tour.steps[this.tour.step]!.look : [];
    for (const chart of this.element.querySelectorAll<HTMLElement>(".chart")) {
      chart.classList.toggle("looked-at", look.some((title) => chart.getAttribute("aria-label")?.startsWith(title)));
    }
  }

  private lookAt(): void {
    this.markCharts();
    // On a narrow page the text would be out of sight.
    if (matchMedia("(min-width: 40rem)").matches) this.element.querySelector(".looked-at")?.scrollIntoView({ block: "center", behavior: "smooth" });
  }

  private drawTour(tour: Tour, index: number): void {
    const step = tour.steps[index]!;
    const go = (to: number) => void this.showStep(tour, to);
    const last = index === tour.steps.length - 1;
    replace(
      this.tourPlace,
      h(
        "section",
        { class: "tour", "aria-label": `Tour: ${tour.title}` },
        h("h2", {}, `${tour.title}: ${step.title}`),
        h("p", { "aria-live": "polite" }, step.text),
        h(
          "div",
          { class: "actions" },
          h("button", { type: "button", disabled: index === 0, onclick: () => go(index - 1) }, "Back"),
          last ? h("a", { class: "button primary", href: "#/tours" }, "More tours") : h("button", { type: "button", class: "primary", onclick: () => go(index + 1) }, "Next"),
          h("span", { class: "hint" }, `${index + 1} of ${tour.steps.length}`),
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                this.leaveTour();
                void this.noteState();
              },
            },
            "Leave the tour, keep the run",
          ),
        ),
      ),
    );
  }
}

/** A scenario's text with another control in the flows that have this one. */
export function withControl(text: string, cc: string, by: string): string {
  return text.replaceAll(`cc = ${JSON.stringify(cc)}`, `cc = ${JSON.stringify(by)}`);
}

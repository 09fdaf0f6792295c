// What to play: a cell with users, a recording, a link, or a scenario as text.

import { announce, field, h, replace, select } from "./dom";
import { ask, Refused } from "./api";
import { ControlEditor } from "./control";
import { CellMap } from "./map";
import type { Access, Build, BuildFlow, Checked, Controls, FeedContent, Mistake, Named, Sources } from "./types";

/** What a run begins with. */
export type Plan = { build: Build } | { text: string };

export const FIRST_BUILD: Build = {
  name: "lab",
  duration_s: 60,
  seed: 1,
  access: { kind: "cell", preset: "lte", rtt_s: 0.022, users: [{ name: "phone", x_m: 300, y_m: 0 }, { name: "tablet", x_m: 150, y_m: 200 }] },
  flows: [
    { name: "download", user: "phone", cc: "cubic" },
    { name: "pages", user: "tablet", cc: "cubic", workload: '{ kind = "web", page = "2MB", interval = "5s" }' },
  ],
};

const WORKLOADS: readonly (readonly [written: string, text: string])[] = [
  ["", "a download without end"],
  ['{ kind = "web", page = "2MB", interval = "5s" }', "a page of 2 MB every 5 s"],
  ['{ kind = "fixed", size = "10MB" }', "one file of 10 MB"],
  ['{ kind = "repeat", size = "100KB", pause = "500ms" }', "files of 100 KB, one after another"],
  ['{ kind = "paced", rate = "2Mbit/s" }', "a film of 2 Mbit/s"],
];

export const CONTENTS: readonly (readonly [FeedContent, string])[] = [
  ["measured", "what was measured"],
  ["none", "nothing (broken)"],
  ["full", "a lie: the cell is full"],
  ["empty", "a lie: the cell is empty"],
  ["random", "random values"],
];

/** A number typed in the unit that people use; `factor` is that unit in the interface's. */
export function numberInput(value: number | null, factor: number, limits: { min?: number; max?: number; step?: number | "any" }, onchange: (value: number | null) => void): HTMLInputElement {
  const input = h("input", {
    type: "number",
    value: value === null ? "" : Number((value / factor).toPrecision(9)),
    step: "any",
    ...limits,
    onchange: () => onchange(input.value === "" ? null : Number(input.value) * factor),
  });
  return input;
}

/** Text with the mistakes of a scenario, each with its place. */
export function mistakeList(fault: unknown): HTMLElement {
  const text = fault instanceof Error ? fault.message : String(fault);
  const mistakes: readonly Mistake[] = fault instanceof Refused ? fault.mistakes : [];
  const place = ({ line, column, problem }: Mistake) => (line === null ? problem : `line ${line}${column === null ? "" : `, column ${column}`}: ${problem}`);
  return h("div", { class: "mistakes", role: "alert" }, h("p", {}, text), mistakes.length ? h("ul", {}, mistakes.map((mistake) => h("li", {}, place(mistake)))) : null);
}

/** The form of a flow that is new. */
export class FlowForm {
  readonly element: HTMLElement;
  private readonly control: ControlEditor;

  constructor(
    readonly flow: BuildFlow,
    users: readonly string[],
    controls: Controls,
    onchange: () => void = () => undefined,
  ) {
    this.control = new ControlEditor(controls, flow.cc, (cc) => {
      flow.cc = cc;
      onchange();
    });
    const change = (apply: () => void) => {
      apply();
      onchange();
    };
    const known = WORKLOADS.some(([written]) => written === (flow.workload ?? ""));
    const own = h("input", { type: "text", value: flow.workload ?? "", spellcheck: "false", onchange: () => change(() => (flow.workload = own.value || null)) });
    const ownField = field("Workload, as in a scenario", own);
    ownField.hidden = known;
    const workload = select([...WORKLOADS, ["own", "another, as in a scenario"]], known ? (flow.workload ?? "") : "own", (written) => {
      ownField.hidden = written !== "own";
      if (written !== "own") change(() => (flow.workload = written || null));
    });
    if (users.length > 0 && !users.includes(flow.user ?? "")) flow.user = users[0]!;
    this.element = h(
      "div",
      { class: "flow-form" },
      h(
        "div",
        { class: "row" },
        users.length > 1 ? field("User", select(users.map((user) => [user, user]), flow.user ?? "", (user) => change(() => (flow.user = user)))) : null,
        field("Direction", select([["down", "to the user"], ["up", "from the user"]], flow.upload ? "up" : "down", (way) => change(() => (flow.upload = way === "up")))),
        field("Workload", workload),
      ),
      ownField,
      this.control.element,
      h(
        "div",
        { class: "row" },
        field("Starts at, s", numberInput(flow.start_s ?? null, 1, { min: 0 }, (value) => change(() => (flow.start_s = value)))),
        field("Stops at, s", numberInput(flow.stop_s ?? null, 1, { min: 0 }, (value) => change(() => (flow.stop_s = value)))),
      ),
    );
  }
}

export class Setup {
  readonly element = h("form", { class: "setup", novalidate: true, "aria-label": "What to play", onsubmit: (event) => this.submit(event) });
  private build: Build;
  private text: string;
  private mode: "cell" | "recording" | "link" | "text";
  private readonly problem = h("div", {});

  constructor(
    private sources: Sources,
    private readonly controls: Controls,
    plan: Plan,
    private readonly onplay: (plan: Plan, text: string) => Promise<void>,
    /** The text of the run, with its changes. */
    private readonly running: () => Promise<string>,
  ) {
    this.build = structuredClone("build" in plan ? plan.build : FIRST_BUILD);
    this.text = "text" in plan ? plan.text : "";
    this.mode = "text" in plan ? "text" : this.build.access.kind;
    this.draw();
  }

  /** Shows another plan, such as that of a tour. */
  adopt(plan: Plan): void {
    if ("build" in plan) {
      this.build = structuredClone(plan.build);
      this.mode = plan.build.access.kind;
    } else {
      this.text = plan.text;
      this.mode = "text";
    }
    this.problem.replaceChildren();
    this.draw();
  }

  plan(): Plan {
    return this.mode === "text" ? { text: this.text } : { build: structuredClone(this.build) };
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    this.problem.replaceChildren();
    try {
      const plan = this.plan();
      const checked = await check(plan);
      await this.onplay(plan, checked.text);
    } catch (fault) {
      this.problem.replaceChildren(mistakeList(fault));
      this.problem.scrollIntoView({ block: "nearest" });
    }
  }

  private users(): string[] {
    return this.build.access.kind === "cell" ? this.build.access.users.map(({ name }) => name) : [];
  }

  private setMode(mode: Setup["mode"]): void {
    this.mode = mode;
    const was = this.build.access;
    if (mode !== "text" && was.kind !== mode) {
      const path = was.kind === "cell" ? { queue: "droptail", buffer_bytes: 150_000 } : { queue: was.queue, buffer_bytes: was.buffer_bytes };
      const accesses: Record<typeof mode, () => Access> = {
        cell: () => structuredClone(FIRST_BUILD.access),
        recording: () => ({ kind: "recording", down: this.sources.builtin[0]?.name ?? "builtin:lte", up: null, scale: 1, rtt_s: 0.04, ...path }),
        link: () => ({ kind: "link", rate_bit_s: 12e6, rtt_s: 0.04, ...path }),
      };
      this.build.access = accesses[mode]();
      const users = this.users();
      for (const flow of this.build.flows) flow.user = users.includes(flow.user ?? "") ? flow.user! : (users[0] ?? null);
      if (mode !== "cell") this.build.rapid = false;
    }
    this.draw();
  }

  private draw(): void {
    const modes: readonly (readonly [Setup["mode"], string])[] = [
      ["cell", "Cell"],
      ["recording", "Recording"],
      ["link", "Link"],
      ["text", "Scenario"],
    ];
    const tabs = modes.map(([mode, text]) =>
      h("label", { class: "tab" }, h("input", { type: "radio", name: "access", value: mode, checked: mode === this.mode, onchange: () => this.setMode(mode) }), h("span", {}, text)),
    );
    const focused = this.element.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement && document.activeElement.name === "access";
    replace(
      this.element,
      h("fieldset", { class: "tabs" }, h("legend", { class: "hidden-label" }, "What the flows cross"), tabs),
      this.mode === "text" ? this.textPart() : [this.accessPart(), this.flowsPart(), this.runPart()],
      this.problem,
      h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Play from 0")),
    );
    if (focused) this.element.querySelector<HTMLInputElement>("input[name=access]:checked")?.focus();
  }

  private accessPart(): HTMLElement {
    const access = this.build.access;
    if (access.kind === "cell") return this.cellPart(access);
    const { queues, builtin, recordings } = this.sources;
    const queue = select(queues.map(({ name }) => [name, name]), access.queue, (name) => {
      access.queue = name;
      this.draw();
    });
    const common = h(
      "div",
      { class: "row" },
      field("Round trip, ms", numberInput(access.rtt_s, 1e-3, { min: 0 }, (value) => (access.rtt_s = value ?? 0))),
      field("Queue", queue),
      field("Buffer, KB", numberInput(access.buffer_bytes, 1e3, { min: 0 }, (value) => (access.buffer_bytes = value))),
    );
    if (access.kind === "link") {
      return h("fieldset", {}, h("legend", {}, "Link"), field("Rate, Mbit/s", numberInput(access.rate_bit_s, 1e6, { min: 0 }, (value) => (access.rate_bit_s = value ?? 0))), common);
    }
    const named = [...builtin, ...recordings];
    const about = (name: string) => named.find((source) => source.name === name)?.about;
    const names = named.map(({ name }) => [name, name] as const);
    const down = select(names, access.down, (name) => {
      access.down = name;
      this.draw();
    });
    const file = h("input", { type: "file", onchange: () => void this.upload(file, access) });
    return h(
      "fieldset",
      {},
      h("legend", {}, "Recording"),
      field("Towards the phone", down, about(access.down)),
      field("Towards the server", select([["", "48 Mbit/s"], ...names], access.up ?? "", (name) => (access.up = name || null))),
      field("Times its capacity", numberInput(access.scale, 1, { min: 0 }, (value) => (access.scale = value ?? 1))),
      field("Add a recording of your own", file, "A mahimahi file: for each delivery opportunity a line with its time in ms; also compressed (.gz)."),
      common,
    );
  }

  private async upload(file: HTMLInputElement, access: Access & { kind: "recording" }): Promise<void> {
    const chosen = file.files?.[0];
    if (!chosen) return;
    try {
      const packed = chosen.name.endsWith(".gz");
      const content = packed ? await new Response(chosen.stream().pipeThrough(new DecompressionStream("gzip"))).blob() : chosen;
      const named = await ask<Named>("POST", `recordings?name=${encodeURIComponent(chosen.name.replace(/\.gz$/, ""))}`, content);
      this.sources = { ...this.sources, recordings: [...this.sources.recordings.filter(({ name }) => name !== named.name), named] };
      access.down = named.name;
      announce(`${named.name} is there: ${named.about}`);
      this.draw();
    } catch (fault) {
      this.problem.replaceChildren(mistakeList(fault));
    }
  }

  private cellPart(access: Access & { kind: "cell" }): HTMLElement {
    const about = this.sources.cells.find(({ name }) => name === access.preset)?.about;
    const map = new CellMap((name, x, y) => {
      const user = access.users.find((other) => other.name === name)!;
      [user.x_m, user.y_m] = [x, y];
      this.draw();
      this.element.querySelector<SVGElement>(`.map [data-user="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
    });
    map.show([{ name: access.preset, x: 0, y: 0 }], access.users.map(({ name, x_m, y_m }) => ({ name, x: x_m, y: y_m, movable: true })));
    const rows = access.users.map((user, index) => {
      const name = h("input", {
        type: "text",
        value: user.name,
        "aria-label": `Name of user ${index + 1}`,
        onchange: () => {
          for (const flow of this.build.flows) if (flow.user === user.name) flow.user = name.value;
          user.name = name.value;
          this.draw();
        },
      });
      const coordinate = (axis: "x_m" | "y_m", text: string) => {
        const input = numberInput(user[axis], 1, {}, (value) => {
          user[axis] = value ?? 0;
          this.draw();
        });
        input.setAttribute("aria-label", `${text} of ${user.name}, m`);
        return input;
      };
      const remove = h(
        "button",
        {
          type: "button",
          class: "small",
          "aria-label": `Remove ${user.name}`,
          onclick: () => {
            access.users.splice(index, 1);
            this.build.flows = this.build.flows.filter((flow) => flow.user !== user.name);
            this.draw();
          },
        },
        "✕",
      );
      return h("tr", {}, h("td", {}, name), h("td", {}, coordinate("x_m", "East")), h("td", {}, coordinate("y_m", "North")), h("td", {}, access.users.length > 1 ? remove : null));
    });
    const add = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          const used = new Set(this.users());
          let number = access.users.length + 1;
          while (used.has(`phone${number}`)) number += 1;
          access.users.push({ name: `phone${number}`, x_m: 80 * number - 300, y_m: -180 });
          this.draw();
        },
      },
      "Add a user",
    );
    const feed = (this.build.feed ??= { delay_s: 0.001, error: 0, content: "measured" });
    const rapid = h("input", { type: "checkbox", checked: this.build.rapid ?? false, onchange: () => (this.build.rapid = rapid.checked) });
    return h(
      "fieldset",
      {},
      h("legend", {}, "Cell"),
      h(
        "div",
        { class: "row" },
        field("Preset", select(this.sources.cells.map(({ name }) => [name, name]), access.preset, (name) => {
          access.preset = name;
          this.draw();
        })),
        field("Round trip of the wire, ms", numberInput(access.rtt_s, 1e-3, { min: 0 }, (value) => (access.rtt_s = value ?? 0))),
      ),
      about ? h("p", { class: "hint" }, about) : null,
      map.element,
      h("table", { class: "users" }, h("thead", {}, h("tr", {}, h("th", {}, "User"), h("th", {}, "East, m"), h("th", {}, "North, m"), h("td", {}))), h("tbody", {}, rows)),
      add,
      h(
        "details",
        {},
        h("summary", {}, "Radio information and proxy"),
        h(
          "div",
          { class: "row" },
          field("Reports contain", select(CONTENTS, feed.content, (content) => (feed.content = content as FeedContent))),
          field("Their delay, ms", numberInput(feed.delay_s, 1e-3, { min: 0 }, (value) => (feed.delay_s = value ?? 0))),
          field("Their largest error, %", numberInput(feed.error, 1e-2, { min: 0, max: 90 }, (value) => (feed.error = value ?? 0))),
        ),
        h("label", { class: "check" }, rapid, h("span", {}, "A proxy at the edge splits connections and shares the radio by demand (RAPID)")),
      ),
    );
  }

  private flowsPart(): HTMLElement {
    const users = this.users();
    const flows = this.build.flows.map((flow, index) =>
      h(
        "details",
        { class: "flow" },
        h("summary", {}, `${flow.name ?? "flow"}: ${flow.cc} ${flow.upload ? "from" : "to"} ${flow.user ?? "phone"}`),
        new FlowForm(flow, users, this.controls).element,
        this.build.flows.length > 1
          ? h(
              "button",
              {
                type: "button",
                class: "small",
                onclick: () => {
                  this.build.flows.splice(index, 1);
                  this.draw();
                },
              },
              "Remove this flow",
            )
          : null,
      ),
    );
    const add = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          const used = new Set(this.build.flows.map(({ name }) => name));
          let number = this.build.flows.length + 1;
          while (used.has(`flow${number}`)) number += 1;
          this.build.flows.push({ name: `flow${number}`, user: users[0] ?? null, cc: "cubic" });
          this.draw();
          this.element.querySelector<HTMLDetailsElement>("details.flow:last-of-type")!.open = true;
        },
      },
      "Add a flow",
    );
    return h("fieldset", {}, h("legend", {}, "Flows"), flows, add);
  }

  private runPart(): HTMLElement {
    const { build } = this;
    return h(
      "fieldset",
      { class: "row" },
      h("legend", {}, "Run"),
      field("Length, s", numberInput(build.duration_s, 1, { min: 0 }, (value) => (build.duration_s = value ?? 60))),
      field("Seed", numberInput(build.seed, 1, { min: 0, max: 2 ** 32 - 1, step: 1 }, (value) => (build.seed = value ?? 1))),
    );
  }

  private textPart(): HTMLElement {
    const text = h("textarea", { rows: 24, spellcheck: "false", oninput: () => (this.text = text.value) });
    text.value = this.text;
    const { examples } = this.sources;
    const example = select([["", "choose…"], ...examples.map(({ name, about }) => [name, `${name}: ${about}`] as const)], "", (name) => {
      this.text = examples.find((one) => one.name === name)?.text ?? this.text;
      this.draw();
    });
    const file = h("input", {
      type: "file",
      accept: ".toml",
      onchange: () =>
        void file.files?.[0]?.text().then((content) => {
          this.text = content;
          this.draw();
        }),
    });
    const take = h("button", {
      type: "button",
      class: "small",
      onclick: () =>
        void this.running().then(
          (content) => {
            this.text = content;
            this.draw();
          },
          (fault: unknown) => this.problem.replaceChildren(mistakeList(fault)),
        ),
    });
    take.textContent = "Take the text of the run, with its changes";
    return h("fieldset", {}, h("legend", {}, "Scenario"), field("An example", example), field("A file of your own", file), take, field("Text", text));
  }
}

/** The text of a plan; it is refused if it has mistakes. */
export function check(plan: Plan): Promise<Checked> {
  return "build" in plan ? ask("POST", "scenarios/build", plan.build) : ask("POST", "scenarios/check", { text: plan.text });
}

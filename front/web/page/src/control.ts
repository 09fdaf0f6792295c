// Choosing a congestion control, its decorators and its options, with the texts of `ranpace list cc`: by fields, or typed.

import { ask } from "./api";
import { field, h, replace, select } from "./dom";
import type { CheckedControl, Control, ControlOption, Controls } from "./types";

/** Time after the last key until the server is asked whether the control can be used. */
const REST_MS = 200;

/** A control as it is written: `NAME+DECORATOR:option=value:option=value`. Options belong to all names. */
export interface Written {
  names: string[];
  options: Map<string, string>;
}

/** A control in its parts; a short name in what it stands for. */
export function parse(text: string, controls: Controls): Written {
  const [name = "", ...options] = text.trim().split(":");
  const [first = "", ...decorators] = name.split("+").map((part) => part.trim());
  const long = controls.short_names[first] ?? first;
  const pairs = options.map((option): [string, string] => {
    const [key = "", ...value] = option.split("=");
    // A key alone is a switch that is on.
    return [key.trim(), value.length ? value.join("=").trim() : "on"];
  });
  return { names: [...long.split("+"), ...decorators], options: new Map(pairs) };
}

export function write({ names, options }: Written): string {
  return [names.join("+"), ...[...options].filter(([, value]) => value !== "").map(([key, value]) => `${key}=${value}`)].join(":");
}

const UNITS: Record<"time" | "size", readonly string[]> = { time: ["us", "ms", "s"], size: ["B", "KB", "MB"] };

/** A number and the unit behind it: `50ms`. */
export function quantity(text: string): { number: string; unit: string } {
  const [, number = "", unit = ""] = /^\s*([\d.]*)\s*([A-Za-z]*)\s*$/.exec(text) ?? [];
  return { number, unit };
}

/** Whether the default is another one under another option: "(thesis: off)". */
function dependsOnOthers(option: ControlOption): boolean {
  return /[;(] ?[a-z]+: (on|off)\)/.test(option.values);
}

export class ControlEditor {
  readonly element = h("div", { class: "control-editor" });
  private written: Written;
  private readonly typed = h("input", { type: "text", spellcheck: "false", autocomplete: "off", oninput: () => this.readTyped() });
  private readonly parts = h("div", {});
  private readonly choice: HTMLSelectElement;
  private readonly about = h("p", { class: "hint" });
  private readonly fault = h("p", { class: "error", role: "alert" });
  /** Where the fault of an option is shown, and its input. */
  private readonly faults = new Map<string, { place: HTMLElement; input: HTMLElement }>();
  private asking: number | undefined;

  constructor(
    private readonly controls: Controls,
    initial: string,
    private readonly onchange: (cc: string) => void = () => undefined,
  ) {
    this.written = parse(initial, controls);
    this.choice = select(controls.algorithms.map(({ name }) => [name, name]), this.written.names[0] ?? "", (name) => this.choose(name));
    this.typed.value = initial;
    replace(this.element, field("Congestion control", this.choice), this.about, this.parts, field("As written", this.typed), this.fault);
    this.draw();
  }

  value(): string {
    return this.typed.value.trim();
  }

  private get algorithm(): Control | undefined {
    return this.controls.algorithms.find(({ name }) => name === this.written.names[0]);
  }

  /** Another algorithm: decorators stay where they can, and options that it has, too. */
  private choose(name: string): void {
    const next = this.controls.algorithms.find((control) => control.name === name);
    this.written.names = [name, ...(next?.decorators ? this.written.names.slice(1) : [])];
    this.dropOthers();
    this.changed(true);
  }

  /** Options that no part has any more are left out. */
  private dropOthers(): void {
    const known = new Set(this.options().map(({ option }) => option.key));
    for (const key of this.written.options.keys()) if (!known.has(key)) this.written.options.delete(key);
  }

  /** The options of all parts; one that several parts have comes once. */
  private options(): { part: string; option: ControlOption }[] {
    const parts = this.written.names.flatMap((name, index) => (index === 0 ? this.controls.algorithms : this.controls.decorators).filter((control) => control.name === name));
    const seen = new Set<string>();
    return parts.flatMap(({ name, options }) => options.map((option) => ({ part: name, option }))).filter(({ option: { key } }) => !seen.has(key) && seen.add(key));
  }

  private changed(redraw: boolean): void {
    this.typed.value = write(this.written);
    if (redraw) this.draw();
    this.tell();
  }

  private readTyped(): void {
    this.written = parse(this.typed.value, this.controls);
    this.choice.value = this.written.names[0] ?? "";
    this.draw();
    this.tell();
  }

  private tell(): void {
    this.onchange(this.value());
    clearTimeout(this.asking);
    this.asking = window.setTimeout(() => void this.check(), REST_MS);
  }

  /** Asks the server whether the control can be used; what is wrong stands at the option's field. */
  private async check(): Promise<void> {
    const text = this.value();
    const { problem, option } = await ask<CheckedControl>("GET", `controls/check?cc=${encodeURIComponent(text)}`).catch((fault: unknown) => ({ problem: String(fault), option: null }));
    if (text !== this.value()) return;
    for (const [key, { place, input }] of this.faults) {
      place.textContent = key === option ? problem : "";
      if (key === option) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    const shown = option && this.faults.has(option);
    if (shown) this.parts.querySelector("details")!.open = true;
    this.fault.textContent = problem === "" || shown ? "" : `${option ? `${option}: ` : ""}${problem}`;
  }

  private draw(): void {
    const { algorithm } = this;
    this.faults.clear();
    this.fault.textContent = "";
    this.about.textContent = algorithm ? `${algorithm.about}. ${algorithm.source}` : "";
    const open = this.parts.querySelector("details")?.open ?? (this.written.names.length > 1 || this.written.options.size > 0);
    const wraps = algorithm?.decorators ? h("fieldset", {}, h("legend", {}, "Decorators"), this.controls.decorators.map((decorator) => this.decorator(decorator))) : null;
    const all = this.options();
    const options = [...new Set(all.map(({ part }) => part))].map((part) =>
      h("fieldset", {}, h("legend", {}, `Options of ${part}`), all.filter((one) => one.part === part).map(({ option }) => this.option(option))),
    );
    replace(this.parts, wraps || options.length ? h("details", { open }, h("summary", {}, "Decorators and options"), wraps, options) : null);
  }

  private decorator(decorator: Control): HTMLElement {
    const place = () => this.written.names.indexOf(decorator.name, 1);
    const box = h("input", {
      type: "checkbox",
      checked: place() > 0,
      onchange: () => {
        if (box.checked) this.written.names.push(decorator.name);
        else this.written.names.splice(place(), 1);
        this.dropOthers();
        this.changed(true);
      },
    });
    return h("label", { class: "check", title: decorator.source }, box, h("span", {}, h("b", {}, decorator.name), ` ${decorator.about}`));
  }

  private set(key: string, value: string): void {
    if (value === "") this.written.options.delete(key);
    else this.written.options.set(key, value);
    this.changed(false);
  }

  /** The field of an option, by its kind. */
  private option(option: ControlOption): HTMLElement {
    const { key, about, default: usual } = option;
    const value = this.written.options.get(key);
    const place = h("p", { class: "error", role: "alert" });
    const keep = (input: HTMLElement) => this.faults.set(key, { place, input });
    if (option.kind === "switch") {
      const box = h("input", {
        type: "checkbox",
        role: "switch",
        checked: ["on", "true", "1"].includes(value ?? usual ?? "off"),
        onchange: () => {
          const now = box.checked ? "on" : "off";
          this.set(key, now === usual && !dependsOnOthers(option) ? "" : now);
        },
      });
      keep(box);
      return h("div", { class: "field" }, h("label", { class: "check" }, box, h("span", {}, h("b", {}, key), ` ${about} (${option.values})`)), place);
    }
    let one: HTMLElement;
    if (option.kind === "choice") {
      const words = option.words ?? [];
      const all = value === undefined || words.includes(value) ? words : [...words, value];
      one = field(key, keepInput(select([["", `default: ${usual ?? ""}`], ...all.map((word) => [word, word] as const)], value ?? "", (word) => this.set(key, word)), keep), `${about} (${option.values})`);
    } else if (option.kind === "time" || option.kind === "size") {
      one = this.quantityField(option, option.kind, keep);
    } else {
      const input = h("input", {
        type: option.kind === "number" ? "number" : "text",
        value: value ?? "",
        placeholder: usual ?? "",
        spellcheck: "false",
        step: "any",
        min: option.low,
        max: option.high,
        oninput: () => this.set(key, input.value.trim()),
      });
      keep(input);
      one = field(key, input, `${about} (${option.values})`);
    }
    one.append(place);
    return one;
  }

  /** A number with the unit beside it. */
  private quantityField(option: ControlOption, kind: "time" | "size", keep: (input: HTMLElement) => void): HTMLElement {
    const { key, about } = option;
    const now = quantity(this.written.options.get(key) ?? "");
    const usual = quantity(option.default ?? "");
    const units = UNITS[kind];
    const first = now.unit || usual.unit || units[1]!;
    const unit = select((units.includes(first) ? units : [...units, first]).map((name) => [name, name]), first, () => put());
    unit.setAttribute("aria-label", `Unit of ${key}`);
    const input = h("input", { type: "number", min: 0, step: "any", value: now.number, placeholder: usual.unit === "" || usual.unit === first ? usual.number : (option.default ?? ""), oninput: () => put() });
    const put = () => this.set(key, input.value === "" ? "" : `${input.value}${unit.value}`);
    keep(input);
    const one = field(key, input, `${about} (${option.values})`);
    input.after(unit);
    one.classList.add("with-unit");
    return one;
  }
}

function keepInput<T extends HTMLElement>(input: T, keep: (input: HTMLElement) => void): T {
  keep(input);
  return input;
}

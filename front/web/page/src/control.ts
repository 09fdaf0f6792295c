// Choosing a congestion control, its decorators and its options, with the texts of `ranpace list cc`.

import { h, field, replace } from "./dom";
import type { Control, ControlOption, Controls } from "./types";

interface Part {
  name: string;
  options: Map<string, string>;
}

/** `cubic+c2tcp:target=50ms` in its parts; a short name in what it stands for. */
export function parse(text: string, controls: Controls): Part[] {
  return text.split("+").flatMap((written, index) => {
    const [name = "", ...options] = written.split(":");
    const set = new Map(options.map((option) => option.split("=", 2) as [string, string]));
    // Only a name that stands alone, or first, is short for something: behind a `+` it is the decorator itself.
    const long = index === 0 ? controls.short_names[name] : undefined;
    const parts: Part[] = long === undefined || long === name ? [{ name, options: new Map() }] : parse(long, controls);
    const last = parts.at(-1)!;
    for (const [key, value] of set) last.options.set(key, value);
    return parts;
  });
}

export function write(parts: readonly Part[]): string {
  return parts.map(({ name, options }) => [name, ...[...options].filter(([, value]) => value !== "").map(([key, value]) => `${key}=${value}`)].join(":")).join("+");
}

export class ControlEditor {
  readonly element = h("div", { class: "control-editor" });
  private parts: Part[];

  constructor(
    private readonly controls: Controls,
    initial: string,
    private readonly onchange: (cc: string) => void = () => undefined,
  ) {
    this.parts = parse(initial, controls);
    this.draw();
  }

  value(): string {
    return write(this.parts);
  }

  private changed(redraw: boolean): void {
    if (redraw) this.draw();
    this.onchange(this.value());
  }

  private draw(): void {
    const first = this.parts[0]!;
    const { algorithms, decorators } = this.controls;
    const chosen = algorithms.find(({ name }) => name === first.name);
    const choice = h("select", {
      onchange: () => {
        const next = algorithms.find(({ name }) => name === choice.value);
        this.parts = [{ name: choice.value, options: new Map() }, ...(next?.decorators ? this.parts.slice(1) : [])];
        this.changed(true);
      },
    });
    for (const { name } of algorithms) choice.append(h("option", { value: name, selected: name === first.name }, name));
    const details = this.parts.length > 1 || first.options.size > 0;
    const opened = this.element.querySelector("details")?.open ?? details;
    const wraps = chosen?.decorators
      ? h(
          "fieldset",
          {},
          h("legend", {}, "Decorators"),
          decorators.map((decorator) => this.decorator(decorator)),
        )
      : null;
    const options = this.parts.flatMap((part, index) => {
      const known = index === 0 ? chosen : decorators.find(({ name }) => name === part.name);
      return known?.options.length ? [h("fieldset", {}, h("legend", {}, `Options of ${part.name}`), known.options.map((option) => this.option(part, option)))] : [];
    });
    replace(
      this.element,
      field("Congestion control", choice, chosen ? `${chosen.about}. ${chosen.source}` : `unknown: ${first.name}`),
      wraps || options.length ? h("details", { open: opened }, h("summary", {}, "Decorators and options"), wraps, options) : null,
    );
  }

  private decorator(decorator: Control): HTMLElement {
    const place = () => this.parts.findIndex((part, index) => index > 0 && part.name === decorator.name);
    const box = h("input", {
      type: "checkbox",
      checked: place() > 0,
      onchange: () => {
        if (box.checked) this.parts.push({ name: decorator.name, options: new Map() });
        else this.parts.splice(place(), 1);
        this.changed(true);
      },
    });
    return h("label", { class: "check", title: decorator.source }, box, h("span", {}, h("b", {}, decorator.name), ` ${decorator.about}`));
  }

  private option(part: Part, option: ControlOption): HTMLElement {
    const input = h("input", {
      type: "text",
      value: part.options.get(option.key) ?? "",
      placeholder: option.values,
      spellcheck: "false",
      oninput: () => {
        part.options.set(option.key, input.value.trim());
        this.changed(false);
      },
    });
    return field(option.key, input, `${option.about}; ${option.values}`);
  }
}

// Building elements without a framework.

export type Child = Node | string | number | null | undefined | false;

type Handlers = { [E in keyof HTMLElementEventMap as `on${E}`]?: (event: HTMLElementEventMap[E]) => void };

/** Attributes by name; `true` sets an empty one, `false` and `undefined` leave it out; `onclick` and the like are listeners. */
export type Attributes = Handlers & { [name: string]: unknown };

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, attributes, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, attributes, children);
  return element;
}

function apply(element: Element, attributes: Attributes, children: (Child | Child[])[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (name === "value" && "value" in element) {
      element.value = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  fill(element, ...children);
}

export function fill(element: Element, ...children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Replaces all children of an element. */
export function replace(element: Element, ...children: (Child | Child[])[]): void {
  element.replaceChildren();
  fill(element, ...children);
}

/** Offers text or bytes to the user as a file. */
export function download(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  // The browser has taken the address by the next second.
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

let unique = 0;

/** A control with its label. */
export function field(label: string, control: HTMLElement, hint?: string): HTMLElement {
  unique += 1;
  control.id ||= `field-${unique}`;
  const children: Child[] = [h("label", { for: control.id }, label), control];
  if (hint) {
    const id = `hint-${unique}`;
    control.setAttribute("aria-describedby", id);
    children.push(h("p", { class: "hint", id }, hint));
  }
  return h("div", { class: "field" }, children);
}

/** A label beside its control. */
export function inline(label: string, control: HTMLElement): HTMLElement {
  return h("label", { class: "inline" }, label, control);
}

export function select(options: readonly (readonly [value: string, text: string])[], chosen: string, onchange: (value: string) => void): HTMLSelectElement {
  const element = h("select", { onchange: () => onchange(element.value) });
  for (const [value, text] of options) element.append(h("option", { value, selected: value === chosen }, text));
  return element;
}

let announcer: HTMLElement | undefined;

/** Says something to those who listen to the page; it is also shown for a while. */
export function announce(text: string, kind: "note" | "error" = "note"): void {
  announcer ??= document.body.appendChild(h("div", { class: "announcements", role: "status", "aria-live": "polite" }));
  const note = h("p", { class: kind }, text);
  announcer.append(note);
  setTimeout(() => note.remove(), kind === "error" ? 12_000 : 4_000);
}

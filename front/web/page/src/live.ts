// The view of commands that run: the charts of a run, of what happens now. It changes nothing.

import { ask } from "./api";
import { Pairs } from "./chart";
import { announce, field, h, inline, replace, select } from "./dom";
import { Panel, type PanelHost } from "./panel";
import { link, note, type Shown } from "./route";
import type { LiveSource } from "./types";
import { TimeView } from "./view";

const WINDOWS: readonly (readonly [string, string])[] = [
  ["10", "the last 10 s"],
  ["60", "the last 60 s"],
  ["", "all"],
];
const [RUNNING, HELD] = ["Pause the picture", "Go on"];

export class Live implements Shown {
  readonly element = h("div", { class: "play" });
  private readonly view = new TimeView();
  private readonly pairs = new Pairs();
  private readonly list = h("div", {});
  private readonly state = h("p", { role: "status", class: "hint" });
  private readonly bar = h("div", { class: "transport", role: "toolbar", "aria-label": "Watch", hidden: true });
  private readonly address = h("input", { type: "text", placeholder: "127.0.0.1:8012", autocomplete: "off", spellcheck: "false" });
  private readonly pause = h("button", { type: "button", class: "primary", onclick: () => this.hold(!this.held) }, RUNNING);
  private readonly livePlace = h("div", {});
  private readonly panelPlace = h("div", { class: "panels" });
  private panel: Panel | undefined;
  private held = false;
  /** Counts openings: one that comes later overtakes one that still waits for the server. */
  private turn = 0;

  constructor() {
    this.view.window = 10;
    const watch = h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const address = this.address.value.trim();
          // The same address again: its command may run by now.
          if (new URLSearchParams({ address }).toString() === location.hash.split("?")[1]) void this.open(new URLSearchParams({ address }));
          else location.hash = link("live", { address });
        },
      },
      field("Address", this.address, "Of an RNIS server, the metrics of a server of pages, or unix:/PATH of a proxy's or an emulation's socket."),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Watch"), h("button", { type: "button", onclick: () => void this.look() }, "Look again")),
    );
    const shown = select(WINDOWS, "10", (value) => {
      this.view.window = value ? Number(value) : undefined;
      this.view.reset();
    });
    replace(this.bar, this.pause, inline("Show", shown));
    const sources = h("section", { class: "card" }, h("h2", {}, "What runs here"), this.list, watch);
    this.element.append(h("div", { class: "head" }, this.bar, this.state), h("aside", { class: "side", "aria-label": "Commands" }, sources, this.livePlace), this.panelPlace);
  }

  async open(params: URLSearchParams): Promise<void> {
    this.turn += 1;
    const { turn } = this;
    this.leave();
    const address = params.get("address") ?? "";
    this.address.value = address;
    note("live", params);
    this.tell("", false);
    void this.look();
    if (!address) return;
    const host: PanelHost = {
      controls: undefined,
      view: this.view,
      pairs: this.pairs,
      changed: (panel) => this.showState(panel),
      laidOut: () => undefined,
      edited: () => undefined,
    };
    const panel = new Panel("", host);
    try {
      await panel.attach(address);
      if (turn !== this.turn) {
        panel.destroy();
        return;
      }
      this.panel = panel;
      replace(this.panelPlace, panel.element);
      replace(this.livePlace, panel.live);
      this.bar.hidden = false;
      this.showState(panel);
    } catch (fault) {
      panel.destroy();
      if (turn !== this.turn) return;
      const said = fault instanceof Error ? fault.message : String(fault);
      this.tell(said, true);
      announce(said, "error");
    }
  }

  destroy(): void {
    this.turn += 1;
    this.leave();
  }

  restyle(): void {
    this.panel?.restyle();
  }

  /** Lists what answers now. */
  private async look(): Promise<void> {
    try {
      const sources = await ask<LiveSource[]>("GET", "live");
      const item = (source: LiveSource) => h("li", {}, h("a", { href: link("live", { address: source.address }) }, source.what), h("br", {}), h("code", {}, source.address));
      const none = h("p", { class: "hint" }, "Nothing answers at the usual addresses. Begin a command, or type the address that it printed.");
      replace(this.list, sources.length ? h("ul", { class: "plain sources" }, sources.map(item)) : none);
    } catch (fault) {
      announce(fault instanceof Error ? fault.message : String(fault), "error");
    }
  }

  private leave(): void {
    this.panel?.destroy();
    this.panel = undefined;
    this.held = false;
    this.pause.textContent = RUNNING;
    this.bar.hidden = true;
    this.view.restart();
    replace(this.panelPlace);
    replace(this.livePlace);
  }

  /** The picture stands still; its figures go on, and are there when it moves again. */
  private hold(held: boolean): void {
    this.held = held;
    this.pause.textContent = held ? HELD : RUNNING;
    this.panel?.hold(held);
    if (held) this.view.zoom(...this.view.range());
    else this.view.reset();
  }

  private showState(panel: Panel): void {
    if (panel !== this.panel) return;
    const { run } = panel;
    const { problem } = run.state;
    const fault = run.gone ?? (problem ? `${problem}. It is asked again each second.` : undefined);
    this.tell(fault ?? `${run.session.about.name} at ${this.address.value}`, fault !== undefined);
  }

  private tell(said: string, isFault: boolean): void {
    if (this.state.textContent !== said) this.state.textContent = said;
    this.state.className = isFault ? "fault" : "hint";
  }
}

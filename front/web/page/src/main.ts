// The page of `ranpace lab`: its frame, and the view that the address asks for.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { ask } from "./api";
import { h, replace } from "./dom";
import { Gallery } from "./gallery";
import { Live } from "./live";
import { Play } from "./play";
import { Results } from "./results";
import { here, last, link, type Shown } from "./route";
import { TOURS } from "./tours";
import type { ServerInfo } from "./types";

class Tours implements Shown {
  readonly element = h(
    "div",
    { class: "tours" },
    h("h2", {}, "Guided tours"),
    h("p", {}, "Two minutes each. Every step plays; change whatever you like on the way."),
    TOURS.map(({ name, title, about, steps }) =>
      h("article", { class: "card" }, h("h3", {}, title), h("p", {}, about), h("a", { class: "button primary", href: link("play", { tour: name, step: "1" }), "aria-label": `Begin: ${title}` }, `Begin (${steps.length} steps)`)),
    ),
  );
  async open(): Promise<void> {}
  destroy(): void {}
  restyle(): void {}
}

const VIEWS: Record<string, { title: string; make: () => Shown }> = {
  play: { title: "Play", make: () => new Play() },
  live: { title: "Live", make: () => new Live() },
  results: { title: "Results", make: () => new Results() },
  gallery: { title: "Reproductions", make: () => new Gallery() },
  tours: { title: "Tours", make: () => new Tours() },
};

const main = h("main", { id: "main", tabindex: -1 });
const nav = h("nav", { "aria-label": "Views" });
const theme = h("button", { type: "button", class: "small", onclick: () => setTheme(dark() ? "light" : "dark") });
const server = h("span", { class: "hint server" });
let shown: { view: string; content: Shown } | undefined;

function dark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

function setTheme(name: "light" | "dark", keep = true): void {
  document.documentElement.dataset["theme"] = name;
  theme.textContent = name === "dark" ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Use ${name === "dark" ? "light" : "dark"} colours`);
  try {
    if (keep) localStorage.setItem("theme", name);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  shown?.content.restyle();
}

function firstTheme(): "light" | "dark" {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // As above.
  }
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function show(): void {
  const { view, params } = here();
  const known = view in VIEWS ? view : "play";
  if (shown?.view !== known) {
    shown?.content.destroy();
    shown = { view: known, content: VIEWS[known]!.make() };
    replace(main, shown.content.element);
    scrollTo(0, 0);
  }
  document.title = `${VIEWS[known]!.title} – Ranpace lab`;
  replace(
    nav,
    Object.entries(VIEWS).map(([name, { title }]) =>
      h(
        "a",
        {
          href: name === "play" ? last(name) : link(name),
          "aria-current": name === known ? "page" : undefined,
          onclick: (event) => {
            // The run goes on.
            if (name === "play" && known === "play") event.preventDefault();
          },
        },
        title,
      ),
    ),
  );
  void shown.content.open(params).catch((fault: unknown) => {
    replace(main, h("p", { role: "alert", class: "fault" }, fault instanceof Error ? fault.message : String(fault)));
    shown = undefined;
  });
}

setTheme(firstTheme(), false);
document.getElementById("page")!.append(
  h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "To the content"),
  h("header", { class: "top" }, h("h1", {}, "Ranpace lab"), nav, server, theme),
  main,
);
addEventListener("hashchange", show);
show();
void ask<ServerInfo>("GET", "server").then(
  ({ version, folder }) => (server.textContent = `${version} · ${folder}`),
  (fault: unknown) => (server.textContent = fault instanceof Error ? fault.message : String(fault)),
);

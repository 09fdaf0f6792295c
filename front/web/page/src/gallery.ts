// Reproductions: what was published beside what is measured here.

import { h, replace } from "./dom";
import { ask } from "./api";
import { note, type Shown } from "./route";
import type { Reproduction } from "./types";

export class Gallery implements Shown {
  readonly element = h("div", { class: "gallery" });
  private experiments: readonly Reproduction[] = [];
  private readonly list = h("div", {});
  private readonly count = h("output", { class: "hint" });

  async open(params: URLSearchParams): Promise<void> {
    try {
      this.experiments = await ask<Reproduction[]>("GET", "reproductions");
    } catch (fault) {
      replace(this.element, h("h2", {}, "Reproductions"), h("p", { role: "alert" }, fault instanceof Error ? fault.message : String(fault)));
      return;
    }
    const search = h("input", {
      type: "search",
      value: params.get("find") ?? "",
      placeholder: "words, such as rapid or Zhong",
      "aria-label": "Filter the experiments",
      oninput: () => {
        note("gallery", new URLSearchParams(search.value ? { find: search.value } : {}));
        this.draw(search.value);
      },
    });
    replace(
      this.element,
      h("h2", {}, "Reproductions"),
      h("p", {}, "Published experiments, each repeated by one command: what the publication says, and what was measured when the experiment was last recorded."),
      h("div", { class: "row tools" }, search, this.count),
      this.list,
    );
    this.draw(search.value);
  }

  destroy(): void {}

  restyle(): void {}

  private draw(filter: string): void {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.experiments.filter(({ name, title, source, about }) => {
      const text = `${name} ${title} ${source} ${about}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.count.textContent = `${found.length} of ${this.experiments.length} experiments`;
    replace(this.list, found.map((experiment) => card(experiment)));
  }
}

function card({ name, title, source, about, figures }: Reproduction): HTMLElement {
  return h(
    "details",
    { class: "card experiment" },
    h("summary", {}, h("b", {}, title), h("span", { class: "hint" }, ` ${source}`)),
    about.split("\n").filter(Boolean).map((paragraph) => h("p", {}, paragraph)),
    h("p", { class: "hint" }, h("code", {}, `ranpace reproduce ${name}`)),
    figures.length
      ? h(
          "div",
          { class: "scroll", tabindex: 0, role: "region", "aria-label": `Figures of ${name}` },
          h(
            "table",
            { class: "figures" },
            h("thead", {}, h("tr", {}, ["Figure", "Published", "Expected", "Measured", "Verdict"].map((text) => h("th", { scope: "col" }, text)))),
            h("tbody", {}, figures.map((figure) => h("tr", {}, h("td", {}, figure.name), h("td", {}, figure.published), h("td", {}, figure.bounds), h("td", {}, figure.measured), h("td", {}, figure.verdict)))),
          ),
        )
      : h("p", {}, "It has no recorded figures."),
  );
}

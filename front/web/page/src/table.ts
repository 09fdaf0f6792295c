// A table whose rows can be sorted, filtered and saved.

import { h, replace } from "./dom";
import { number, titleOf, unitOf } from "./columns";
import { saveCsv } from "./picture";

export type Value = string | number | null;

export interface TableColumn {
  /** Its name in the results; the unit follows from it. */
  name: string;
  /** Shown in place of its name. */
  title?: string;
}

export class SortedTable {
  readonly element: HTMLElement;
  private readonly body = h("tbody", {});
  private readonly head = h("tr", {});
  private readonly count = h("output", { class: "hint" });
  private sorted: { column: number; down: boolean } | undefined;
  private filter = "";
  private readonly texts: string[];
  private readonly numeric: boolean[];

  constructor(
    readonly columns: readonly TableColumn[],
    readonly rows: readonly (readonly Value[])[],
    private readonly hooks: {
      name: string;
      /** What a row begins with, such as a box to choose it. */
      lead?: (row: number) => HTMLElement;
      /** The rows that are left have changed. */
      onfilter?: (rows: readonly number[]) => void;
      /** The row under the pointer or with the focus. */
      onpoint?: (row: number | undefined) => void;
    },
  ) {
    this.texts = rows.map((row) => row.map((value) => String(value ?? "")).join(" ").toLowerCase());
    this.numeric = columns.map((_, column) => rows.some((row) => typeof row[column] === "number"));
    const search = h("input", {
      type: "search",
      placeholder: "words that a row must have",
      "aria-label": `Filter ${hooks.name}`,
      oninput: () => {
        this.filter = search.value.toLowerCase();
        this.draw();
      },
    });
    const save = h("button", { type: "button", class: "small", onclick: () => this.save() }, "CSV");
    this.element = h(
      "div",
      {},
      h("div", { class: "row tools" }, search, this.count, save),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": hooks.name }, h("table", { class: "figures" }, h("thead", {}, this.head), this.body)),
    );
    this.draw();
  }

  visible(): number[] {
    const words = this.filter.split(/\s+/).filter(Boolean);
    const rows = this.rows.map((_, index) => index).filter((index) => words.every((word) => this.texts[index]!.includes(word)));
    const { sorted } = this;
    if (sorted) {
      rows.sort((a, b) => {
        const [x, y] = [this.rows[a]![sorted.column] ?? null, this.rows[b]![sorted.column] ?? null];
        // What is missing comes last either way.
        if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return sorted.down ? -order : order;
      });
    }
    return rows;
  }

  private draw(): void {
    const { sorted, hooks } = this;
    replace(
      this.head,
      hooks.lead ? h("td", {}) : null,
      this.columns.map(({ name, title }, column) => {
        const mine = sorted?.column === column;
        const unit = unitOf(name).name;
        const sort = () => {
          this.sorted = { column, down: mine ? !sorted.down : false };
          this.draw();
          this.head.querySelectorAll("button")[column]?.focus();
        };
        return h(
          "th",
          { scope: "col", "aria-sort": mine ? (sorted.down ? "descending" : "ascending") : "none" },
          h("button", { type: "button", onclick: sort }, title ?? titleOf(name), unit ? h("span", { class: "unit" }, ` ${unit}`) : null, mine ? (sorted.down ? " ▼" : " ▲") : ""),
        );
      }),
    );
    const rows = this.visible();
    replace(
      this.body,
      rows.map((row) =>
        h(
          "tr",
          { "data-row": row, onmouseenter: () => hooks.onpoint?.(row), onmouseleave: () => hooks.onpoint?.(undefined) },
          hooks.lead ? h("td", {}, hooks.lead(row)) : null,
          this.columns.map(({ name }, column) => {
            const value = this.rows[row]![column] ?? null;
            if (typeof value === "number") return h("td", { class: "number" }, number(value * unitOf(name).factor));
            return h("td", { class: this.numeric[column] ? "number" : undefined }, value ?? "–");
          }),
        ),
      ),
    );
    this.count.textContent = rows.length === this.rows.length ? `${rows.length} rows` : `${rows.length} of ${this.rows.length} rows`;
    hooks.onfilter?.(rows);
  }

  /** The rows that are shown, in the units of the results. */
  private save(): void {
    const rows = this.visible().map((row) => this.rows[row]!);
    saveCsv(this.hooks.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"), this.columns.map(({ name }) => name), rows);
  }
}

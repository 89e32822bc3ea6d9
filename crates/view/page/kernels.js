// The table of kernels, and what is said of the chosen one.

import { count, element, percent, time } from "./format.js";

const COLUMNS = [
  { title: "kernel", value: (one) => one.name, text: (one) => one.name, words: true },
  { title: "time", value: (one) => one.time_ns ?? -1, text: (one) => time(one.time_ns) },
  { title: "share", value: (one) => one.time_share ?? -1, text: (one) => percent(one.time_share) },
  { title: "launches", value: (one) => one.launches, text: (one) => count(one.launches) },
  { title: "mean", value: (one) => one.mean_ns ?? -1, text: (one) => time(one.mean_ns) },
  { title: "waits for", value: (one) => reason(one), text: (one) => reason(one), words: true },
];

/** What warps of a kernel wait for most. */
function reason(kernel) {
  const waits = kernel.stalls.filter((stall) => stall.name !== "selected");
  return waits.length ? `${waits[0].name.replaceAll("_", " ")} ${percent(waits[0].share)}` : "";
}

/** A table that sorts and searches; `choose` hears of the kernel that is chosen. */
export class KernelTable {
  constructor(choose) {
    this.choose = choose;
    this.kernels = [];
    this.sort = { column: 1, down: true };
    this.chosen = null;
    this.search = element("input", { type: "search", placeholder: "part of a name", "aria-label": "search kernels", oninput: () => this.draw() });
    this.head = element("tr");
    this.body = element("tbody");
    const table = element("table", { class: "kernels" }, element("thead", {}, this.head), this.body);
    this.node = element("section", { "aria-label": "kernels" },
      element("div", { class: "tools" }, element("h3", {}, "Kernels"), this.search),
      element("div", { class: "scroll" }, table));
    COLUMNS.forEach((column, place) => {
      const button = element("button", { type: "button", onclick: () => this.order(place) }, column.title);
      this.head.append(element("th", { scope: "col", class: column.words && "words" }, button));
    });
  }

  order(place) {
    const down = this.sort.column === place ? !this.sort.down : !COLUMNS[place].words;
    this.sort = { column: place, down };
    this.draw();
  }

  show(kernels) {
    this.kernels = kernels;
    this.draw();
  }

  draw() {
    const { column, down } = this.sort;
    const wanted = this.search.value.toLowerCase();
    const value = COLUMNS[column].value;
    const shown = this.kernels
      .filter((one) => one.full_name.toLowerCase().includes(wanted))
      .sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const order = typeof x === "string" ? x.localeCompare(y) : x - y;
        return down ? -order : order;
      });
    [...this.head.children].forEach((cell, place) => {
      const order = place === column ? (down ? "descending" : "ascending") : "none";
      cell.setAttribute("aria-sort", order);
    });
    this.body.replaceChildren(...shown.map((one) => this.row(one)));
  }

  row(kernel) {
    const chosen = kernel.symbol === this.chosen;
    const pick = () => {
      this.chosen = kernel.symbol;
      for (const row of this.body.children) row.setAttribute("aria-selected", row === line);
      this.choose(kernel);
    };
    const line = element("tr", {
      tabindex: 0, "aria-selected": chosen ? "true" : "false", onclick: pick,
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); }
        const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
        if (next && line[next]) { event.preventDefault(); line[next].focus(); }
      },
    });
    for (const column of COLUMNS) {
      const cell = element("td", { class: column.words ? "name" : null }, column.text(kernel));
      if (column.words) cell.title = kernel.full_name;
      line.append(cell);
    }
    return line;
  }
}

/** What warps of a kernel did, what bounds it, and its hottest instructions. */
export class KernelDetails {
  constructor({ lines, longest }) {
    this.lines = lines;
    this.longest = longest;
    this.node = element("section", { "aria-label": "chosen kernel", "aria-live": "polite" },
      element("p", { class: "note" }, "Choose a kernel to see why its warps wait, and when it ran."));
  }

  async show(kernel) {
    const bars = element("div", { class: "bars" });
    for (const stall of kernel.stalls.slice(0, 8)) {
      const name = stall.name.replaceAll("_", " ");
      bars.append(element("span", {}, name),
        element("meter", { min: 0, max: 1, value: stall.share, "aria-label": name }),
        element("span", {}, percent(stall.share)));
    }
    const advice = element("ul");
    for (const one of kernel.advice.slice(0, 3)) advice.append(element("li", {}, one.sentence));
    const when = element("button", { type: "button", class: "when", onclick: () => this.longest(kernel) }, "When: its longest launch");
    this.node.replaceChildren(
      element("h3", { title: kernel.full_name }, kernel.name),
      element("div", { class: "tools" }, when, element("span", { class: "note" }, `${count(kernel.launches)} launches, ${time(kernel.time_ns)}`)),
      element("h3", {}, "What its warps did"),
      kernel.stalls.length ? bars : element("p", { class: "note" }, "Stalls are not known: the launches were not timed."),
      advice, await this.hottest(kernel));
  }

  async hottest(kernel) {
    const lines = await this.lines(kernel.symbol);
    if (!lines.length) {
      return element("p", { class: "note" }, "Instructions were not counted; run with --lines to see the hottest ones.");
    }
    const body = element("tbody");
    for (const line of lines) {
      const why = line.stalls.slice(0, 2).map(([name, share]) => `${name.replaceAll("_", " ")} ${percent(share)}`).join(", ");
      body.append(element("tr", {},
        element("td", {}, percent(line.share)),
        element("td", {}, count(line.issued)),
        element("td", { class: "code" }, `0x${line.offset.toString(16).padStart(4, "0")}  ${line.instruction}`),
        element("td", { class: "words", title: line.source }, line.source.split("/").pop()),
        element("td", { class: "words" }, why)));
    }
    const head = element("tr", {}, ...["share", "issued", "instruction", "source", "warps before it"].map((title) => element("th", { scope: "col", class: "words" }, title)));
    return element("div", {}, element("h3", {}, "Hottest instructions"),
      element("div", { class: "scroll", tabindex: 0, "aria-label": "hottest instructions" }, element("table", { class: "lines" }, element("thead", {}, head), body)));
  }
}

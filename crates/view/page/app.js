// The page: a view for every run, all of the same stretch of time, read again while a run goes on.

import { Counters, HeatMap, TimeLine } from "./charts.js";
import { element, time } from "./format.js";
import { KernelDetails, KernelTable } from "./kernels.js";

const PERIOD = 1500;
const status = document.getElementById("status");

async function ask(what, parameters = {}) {
  const answer = await fetch(`api/${what}?${new URLSearchParams(parameters)}`);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

/** One run. */
class RunView {
  constructor(number, about) {
    this.number = number;
    this.cycles = about.cycles_per_ns ?? 1;
    this.rate = about.cycles_per_ns ? "per cycle" : "per ns";
    this.all(false, about);
    this.head = element("h2");
    this.badge = element("span", { class: "badge" });
    this.about = element("p", { class: "about" });
    this.notes = element("div");
    this.table = new KernelTable((kernel) => this.choose(kernel));
    this.details = new KernelDetails({
      lines: (symbol) => this.ask("lines", { function: symbol }),
      longest: (kernel) => this.longest(kernel),
    });
    const left = element("div", { class: "column" }, this.table.node, this.details.node);
    const right = element("div", { class: "column" });
    this.line = new TimeLine(this, (symbol) => this.chooseSymbol(symbol));
    this.charts = [];
    const charted = Boolean(window.uPlot);
    if (charted) right.append(this.zoom(), this.line.node);
    if (charted && about.series != null) {
      const question = (what, parameters) => this.ask(what, { ...parameters, from: this.from, to: this.to });
      const counters = new Counters(this, question, about.counters.gpu, about.first.gpu);
      const heat = (title, part, label = part) => new HeatMap(title, part, about.first[part][0], this, question, about.counters[part], label);
      this.charts = about.ranks
        ? [counters, heat("Rank by time", "gpu", "rank")]
        : [counters, heat("SM by time", "sm"), heat("L2 slice by time", "slice")];
      right.append(...this.charts.map((chart) => chart.node));
    } else if (charted) {
      right.append(element("section", {}, element("p", { class: "note" }, "Counters were not sampled; run with --series 1000 to see them over time.")));
    }
    this.node = element("article", { class: "run" }, element("div", {}, this.head, this.about, this.notes), element("div", { class: "panels" }, left, right));
  }

  ask(what, parameters) {
    return ask(what, { run: this.number, ...parameters });
  }

  name(symbol) {
    return this.names?.get(symbol) ?? symbol;
  }

  async show(about) {
    const report = about.report;
    this.whole = Math.max(about.span_ns, 1);
    if (this.following) this.all(false, about);
    this.cycles = about.cycles_per_ns ?? 1;
    this.version = about.version;
    this.head.replaceChildren(report.name, " ", this.badge);
    this.badge.textContent = report.state === "running" ? "live" : report.state;
    this.badge.classList.toggle("live", report.state === "running");
    this.about.textContent = `${report.command.join(" ")} on ${report.gpu}, ${report.launches} launches, ${time(report.simulated_ns)} simulated`;
    const said = [...report.problems, ...report.notes];
    this.notes.replaceChildren(said.length ? element("ul", { class: "note" }, ...said.map((one) => element("li", {}, one))) : "");
    this.names = new Map(report.kernels.map((one) => [one.symbol, one.name]));
    this.kernels = report.kernels;
    this.table.show(report.kernels);
    const places = new Map(report.kernels.map((one, place) => [one.symbol, place]));
    this.launches = await this.ask("launches");
    this.line.show(this.launches, places);
    await this.load();
  }

  async load() {
    await Promise.all(this.charts.map((chart) => chart.load()));
    this.node.dataset.ready = `${Math.round(this.from)} ${Math.round(this.to)}`;
  }

  draw() {
    this.line.draw();
    for (const chart of this.charts) chart.draw();
  }

  pan() {
    this.line.pan();
    for (const chart of this.charts) chart.pan();
  }

  /** Buttons for whoever has no mouse, and for those who have one. */
  zoom() {
    const button = (label, act) => element("button", { type: "button", onclick: act }, label);
    return element("div", { class: "tools", role: "toolbar", "aria-label": "stretch of time" },
      button("All", () => this.all()), button("Zoom in", () => this.scale(0.5)), button("Zoom out", () => this.scale(2)),
      button("Earlier", () => this.move(-0.5)), button("Later", () => this.move(0.5)));
  }

  key(event) {
    const act = { ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), "+": () => this.scale(0.5), "=": () => this.scale(0.5), "-": () => this.scale(2), 0: () => this.all() }[event.key];
    if (act) { event.preventDefault(); act(); }
  }

  all(draw = true, about = null) {
    if (about) this.whole = Math.max(about.span_ns, 1);
    this.following = true;
    this.from = 0;
    this.to = this.whole;
    if (draw) this.changed();
  }

  scale(by) {
    const middle = (this.from + this.to) / 2, half = (this.to - this.from) * by / 2;
    this.set(middle - half, middle + half);
  }

  move(by) {
    const width = this.to - this.from, from = Math.min(Math.max(0, this.from + by * width), Math.max(0, this.whole - width));
    this.set(from, from + width);
  }

  set(from, to) {
    this.following = false;
    this.from = Math.max(0, from);
    this.to = Math.min(this.whole, Math.max(to, this.from + 1));
    this.changed();
  }

  /** What is there is drawn at once, finer figures when they come. */
  changed() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.pan());
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.load().catch(failed), 60);
  }

  chooseSymbol(symbol) {
    const kernel = this.kernels.find((one) => one.symbol === symbol);
    if (!kernel) return;
    this.table.chosen = symbol;
    this.table.draw();
    this.choose(kernel);
  }

  choose(kernel) {
    this.line.chosen = kernel.symbol;
    this.line.draw();
    this.details.show(kernel).catch(failed);
  }

  longest(kernel) {
    const place = this.launches.kernels.indexOf(kernel.symbol);
    let best = -1;
    this.launches.kernel.forEach((one, at) => {
      if (one === place && (best < 0 || this.launches.duration[at] > this.launches.duration[best])) best = at;
    });
    if (best < 0) return;
    const start = this.launches.start[best], long = this.launches.duration[best];
    this.set(start - long * 0.25, start + long * 1.25);
    status.textContent = `launch ${this.launches.number[best]} ran from ${time(start)} to ${time(start + long)}`;
  }
}

function failed(error) {
  status.textContent = `This failed: ${error.message}`;
}

const views = [];

async function load() {
  const found = await ask("runs");
  document.getElementById("no-charts").hidden = found.charts;
  found.runs.forEach((about, number) => {
    const view = new RunView(number, about);
    views.push(view);
    document.getElementById("runs").append(view.node);
  });
  document.getElementById("runs").classList.toggle("alone", views.length === 1);
  await Promise.all(views.map((view, number) => view.show(found.runs[number])));
  status.textContent = "Ready.";
  document.body.dataset.ready = "yes";
}

/** Folders of runs that go on change; the others never do. */
async function follow() {
  const versions = await ask("versions");
  if (versions.some((version, number) => version !== views[number].version)) {
    const found = await ask("runs");
    for (const view of views) {
      const about = found.runs[view.number];
      if (about.version !== view.version) await view.show(about);
    }
  }
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  for (const view of views) { view.draw(); view.changed(); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => views.forEach((view) => view.draw()));

load().then(() => setInterval(() => document.hidden || follow().catch(failed), PERIOD), failed);

// Charts over simulated time, drawn by uPlot: a time line, counters, heat maps. All charts of a run show the same
// stretch of time.

import { colour, count, element, hue, percent, time } from "./format.js";

/** Room for the names left of every chart, so that times stand below each other. */
const LEFT = 84;

/** A chart in a box that a keyboard reaches; `view` has the stretch of time. */
class Chart {
  constructor(title, height, view) {
    this.view = view;
    this.height = height;
    this.box = element("div", { class: "chart", tabindex: 0, role: "img", "aria-label": title, onkeydown: (event) => view.key(event) });
    this.tip = element("div", { class: "tip" });
    this.tools = element("div", { class: "tools" }, element("h3", {}, title));
    this.node = element("section", { "aria-label": title }, this.tools, this.box, this.tip);
  }

  /** Shows the stretch of time of now, with the data that is there. */
  pan() {
    this.drawn?.setScale("x", { min: this.view.from, max: this.view.to });
  }

  /** A chart of this data; another chart only if it differs in more than its data. */
  plot(options, data) {
    if (!window.uPlot) return;
    const look = [options.look ?? "", this.height, this.box.clientWidth, colour("--text")].join();
    if (this.drawn && this.look === look) {
      this.drawn.setData(data, false);
      this.pan();
      return;
    }
    this.look = look;
    this.drawn?.destroy();
    const view = this.view;
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1 } };
    const hooks = options.hooks ?? {};
    this.drawn = new window.uPlot({
      width: Math.max(200, this.box.clientWidth), height: this.height,
      legend: { show: options.legend ?? false },
      cursor: { drag: { x: true, y: false, setScale: false }, bind: { dblclick: (u, target, handler) => () => { view.all(); return null; } } },
      scales: { x: { time: false, range: () => [view.from, view.to] }, ...options.scales },
      axes: [{ ...axis, values: (u, ticks) => ticks.map((tick) => time(tick)), space: 90 }, { ...axis, size: LEFT, ...options.axis }],
      series: options.series,
      hooks: {
        ...hooks,
        setSelect: [(u) => {
          if (u.select.width < 3) return;
          const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          view.set(from, to);
        }],
      },
    }, data, this.box);
  }
}

/** Kernels by stream and copies by engine. */
export class TimeLine extends Chart {
  constructor(view, choose) {
    super("Time line", 190, view);
    this.choose = choose;
    this.box.addEventListener("click", () => this.under && this.choose(this.under));
  }

  show(launches, places) {
    this.launches = launches;
    const lane = (at) => launches.rank[at] == null ? `stream ${launches.stream[at]}` : `rank ${launches.rank[at]}, stream ${launches.stream[at]}`;
    const streams = [...new Set(launches.stream.map((_, at) => lane(at)))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    const engines = [...new Set(launches.copies.map((one) => one.engine))].sort((a, b) => a - b);
    this.rows = [...streams, ...engines.map((one) => `copies ${one}`)];
    const row = new Map(this.rows.map((name, place) => [name, place]));
    this.bars = launches.start.map((start, at) => ({
      start, end: start + launches.duration[at], row: row.get(lane(at)),
      symbol: launches.kernels[launches.kernel[at]], number: launches.number[at],
    }));
    this.copies = launches.copies.map((one) => ({ start: one.start_ns, end: one.start_ns + one.duration_ns, row: row.get(`copies ${one.engine}`), copy: one }));
    this.places = places;
    this.draw();
  }

  draw() {
    if (!this.launches) return;
    const rows = Math.max(1, this.rows.length);
    this.height = Math.min(420, 60 + 26 * rows);
    this.plot({
      look: this.rows.join(),
      scales: { y: { dir: -1, range: () => [0, rows] } },
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      axis: { splits: () => this.rows.map((name, place) => place + 0.5), values: () => this.rows, grid: { show: false } },
      hooks: { draw: [(u) => this.paint(u)], setCursor: [(u) => this.point(u)] },
    }, [[this.view.from, this.view.to], [0, 0]]);
  }

  paint(u) {
    const { ctx, bbox } = u, { from, to } = this.view;
    const high = bbox.height / Math.max(1, this.rows.length);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const scale = bbox.width / (to - from), edge = colour("--text");
    const colours = new Map([...this.places].map(([symbol, place]) => [symbol, hue(place)]));
    const bar = (one, fill, chosen) => {
      if (one.end < from || one.start > to) return;
      const left = bbox.left + (one.start - from) * scale, width = Math.max(1, (one.end - one.start) * scale);
      ctx.fillStyle = fill;
      ctx.fillRect(left, bbox.top + one.row * high + high * 0.15, width, high * 0.7);
      if (chosen && width > 5) {
        ctx.strokeStyle = edge;
        ctx.strokeRect(left, bbox.top + one.row * high + high * 0.15, width, high * 0.7);
      }
    };
    const faint = colour("--faint");
    for (const one of this.copies) bar(one, faint);
    for (const one of this.bars) {
      const chosen = one.symbol === this.chosen;
      ctx.globalAlpha = this.chosen && !chosen ? 0.35 : 1;
      bar(one, colours.get(one.symbol) ?? edge, chosen);
    }
    ctx.restore();
  }

  point(u) {
    const { left, top } = u.cursor;
    this.under = null;
    if (left == null || left < 0) { this.tip.textContent = ""; return; }
    const at = u.posToVal(left, "x"), row = Math.floor(u.posToVal(top, "y"));
    const slack = (this.view.to - this.view.from) / 1000;
    const holds = (one) => one.row === row && one.start - slack <= at && at <= one.end + slack;
    const bar = this.bars.find(holds), copy = this.copies.find(holds);
    if (bar) {
      this.under = bar.symbol;
      this.tip.textContent = `launch ${bar.number}: ${this.view.name(bar.symbol)}, ${time(bar.end - bar.start)} from ${time(bar.start)}`;
    } else if (copy) {
      this.tip.textContent = `${copy.copy.direction}, ${count(copy.copy.bytes)} bytes, ${time(copy.end - copy.start)} from ${time(copy.start)}`;
    } else this.tip.textContent = time(at);
  }
}

/** Counters of the whole GPU over time, one scale each. */
export class Counters extends Chart {
  constructor(view, ask, counters, first) {
    super("Counters over time", 240, view);
    this.ask = ask;
    this.chosen = first.filter((name) => counters.some((one) => one.name === name));
    this.counters = counters;
    this.chosen.forEach((name, place) => this.tools.append(this.choice(name, place)));
  }

  choice(name, place) {
    const select = element("select", { "aria-label": `counter ${place + 1}`, onchange: () => { this.chosen[place] = select.value; this.load(); } });
    for (const one of this.counters) select.append(element("option", { value: one.name, title: one.summary, selected: one.name === name }, one.name));
    return select;
  }

  async load() {
    const width = Math.max(200, this.box.clientWidth - LEFT);
    this.data = await this.ask("series", { counters: [...new Set(this.chosen)].join(","), columns: Math.round(width) });
    this.draw();
  }

  draw() {
    const data = this.data;
    if (!data) return;
    const cycles = this.view.cycles * (data.to - data.from) / data.columns;
    const x = Array.from({ length: data.columns }, (_, column) => data.from + (column + 0.5) * (data.to - data.from) / data.columns);
    const names = [...new Set(this.chosen)].filter((name) => data.values[name]);
    const series = [{ label: "time", value: (u, at) => at == null ? "" : time(at) }];
    const scales = {}, values = [x];
    names.forEach((name, place) => {
      scales[name] = { range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1] };
      series.push({ label: `${name} ${this.view.rate}`, scale: name, stroke: hue(place), width: 1.5, value: (u, value) => count(value), points: { show: false } });
      values.push(data.values[name].map((counted) => counted / cycles));
    });
    this.plot({ look: names.join(), legend: true, scales, series, axis: { scale: names[0], values: (u, ticks) => ticks.map(count) } }, values);
  }
}

/** One counter of every part of a kind, as colours. */
export class HeatMap extends Chart {
  constructor(title, part, first, view, ask, counters, label = part) {
    super(title, 220, view);
    this.label = label;
    this.ask = ask;
    this.part = part;
    this.counter = first;
    const select = element("select", { "aria-label": `${title}: counter`, onchange: () => { this.counter = select.value; this.load(); } });
    for (const one of counters) select.append(element("option", { value: one.name, title: one.summary, selected: one.name === first }, one.name));
    this.tools.append(select);
  }

  async load() {
    const width = Math.max(200, this.box.clientWidth - LEFT);
    this.data = await this.ask("heat", { part: this.part, counter: this.counter, columns: Math.min(600, Math.round(width / 2)) });
    this.draw();
  }

  draw() {
    const data = this.data;
    if (!data || !data.parts) { this.tip.textContent = "Nothing was counted."; return; }
    this.picture = picture(data);
    this.plot({
      look: data.parts,
      scales: { y: { dir: -1, range: () => [0, data.parts] } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axis: { values: (u, ticks) => ticks.map((tick) => Number.isInteger(tick) ? `${this.label} ${tick}` : ""), grid: { show: false } },
      hooks: { draw: [(u) => this.paint(u)], setCursor: [(u) => this.point(u)] },
    }, [[this.view.from, this.view.to], [0, 0]]);
  }

  paint(u) {
    const { ctx, bbox } = u, { from, to } = this.view, data = this.data;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    const scale = bbox.width / (to - from);
    ctx.drawImage(this.picture.canvas, bbox.left + (data.from - from) * scale, bbox.top, (data.to - data.from) * scale, bbox.height);
    ctx.restore();
  }

  point(u) {
    const { left, top } = u.cursor, data = this.data;
    if (left == null || left < 0) { this.tip.textContent = ""; return; }
    const at = u.posToVal(left, "x"), part = Math.floor(u.posToVal(top, "y"));
    const column = Math.floor((at - data.from) / (data.to - data.from) * data.columns);
    const counted = data.cells[part * data.columns + column];
    if (counted == null) { this.tip.textContent = ""; return; }
    const cycles = this.view.cycles * (data.to - data.from) / data.columns;
    this.tip.textContent = `${this.label} ${part} at ${time(at)}: ${count(counted / cycles)} ${this.view.rate}, ${percent(this.picture.most ? counted / this.picture.most : 0)} of the most here`;
  }
}

/** Cells as an image, a pixel each. */
function picture(data) {
  const canvas = element("canvas", { width: data.columns, height: data.parts });
  const context = canvas.getContext("2d"), image = context.createImageData(data.columns, data.parts);
  const most = data.cells.reduce((most, one) => Math.max(most, one), 0);
  const stops = ["--heat-low", "--heat-middle", "--heat-high"].map((name) => channels(colour(name)));
  data.cells.forEach((counted, at) => {
    const share = most ? Math.sqrt(counted / most) * 2 : 0, first = Math.min(1, Math.floor(share)), part = share - first;
    for (let channel = 0; channel < 3; channel++) {
      image.data[4 * at + channel] = stops[first][channel] * (1 - part) + stops[first + 1][channel] * part;
    }
    image.data[4 * at + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  return { canvas, most };
}

/** Red, green and blue of `#rrggbb`. */
function channels(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

// A sketch of how Grafana draws: enough to see whether a panel is empty, unreadable or misleading.
"use strict";
const { dashboard, told } = INPUT;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["#7EB26D", "#EAB839", "#6ED0E0", "#EF843C", "#E24D42", "#1F78C1", "#BA43A9", "#705DA0", "#508642", "#CCA300",
  "#447EBC", "#C15C17", "#890F02", "#0A437C", "#6D1F62", "#584477", "#B7DBAB", "#F4D598", "#70DBED", "#F9BA8F"];

const short = (v, unit = "") => {
  const size = Math.abs(v);
  for (const [limit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "K"]])
    if (size >= limit) return +(v / limit).toPrecision(3) + " " + letter + unit;
  return +v.toPrecision(3) + (unit ? " " + unit : "");
};
const FORMATS = {
  percentunit: (v) => +(100 * v).toPrecision(3) + "%", none: (v) => String(+v.toPrecision(6)), short,
  s: (v) => v >= 86400 ? +(v / 86400).toPrecision(3) + " d" : v >= 3600 ? +(v / 3600).toPrecision(3) + " h"
    : v >= 60 ? +(v / 60).toPrecision(3) + " min" : v >= 1 || v === 0 ? +v.toPrecision(3) + " s" : v >= 1e-3 ? +(v * 1e3).toPrecision(3) + " ms"
    : +(v * 1e6).toPrecision(3) + " µs",
  bytes: (v) => { let n = 0; while (v >= 1024 && n < 5) { v /= 1024; n++; } return +v.toPrecision(3) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][n]; },
  Bps: (v) => short(v, "B/s"), celsius: (v) => +v.toPrecision(3) + " °C", watt: (v) => short(v, "W"), reqps: (v) => short(v, "req/s"),
  cps: (v) => short(v, "c/s"), ops: (v) => short(v, "ops/s"), currencyUSD: (v) => "$" + +v.toPrecision(3),
};
const format = (v, unit) => unit.startsWith("suffix:") ? short(v, unit.slice(7).trim()) : (FORMATS[unit] || short)(v);
const named = (legend, metric) => legend ? legend.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? "")
  : "{" + Object.entries(metric).map(([k, v]) => `${k}="${v}"`).join(", ") + "}";

// What defaults and overrides say of a field: its properties, by their dotted names.
function looks(config, name) {
  const flat = {};
  const spread = (value, path) => value && typeof value === "object" && !Array.isArray(value)
    ? Object.entries(value).forEach(([key, each]) => spread(each, path ? path + "." + key : key)) : (flat[path] = value);
  spread(config.defaults, "");
  for (const { matcher, properties } of config.overrides) {
    const is = matcher.id === "byRegexp" ? new RegExp(matcher.options.replace(/^\/|\/$/g, "")).test(name) : matcher.options === name;
    if (is) for (const { id, value } of properties) spread(value, id);
  }
  return flat;
}
const mapped = (look, value) => look.mappings?.[0]?.options[String(value)];
function threshold(look, value) {
  let colour = null;
  for (const step of look["thresholds.steps"] || []) if (step.value === null || value >= step.value) colour = step.color;
  return colour;
}
const ink = (ground) => [1, 3, 5].reduce((sum, at, n) => sum + [0.299, 0.587, 0.114][n] * parseInt(ground.slice(at, at + 2), 16), 0) > 150 ? "#111" : "#fff";
const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, -1);

function seriesOf(panel) {
  let index = 0;
  return told.panels[panel.id].flatMap(({ legend, result }) => result.map(({ metric, values }) => {
    const raw = named(legend, metric), look = looks(panel.fieldConfig, raw);
    const colour = look["color.fixedColor"] || PALETTE[index++ % PALETTE.length];
    return { metric, values: values.map(([t, v]) => [t, +v]), name: look.displayName || raw, look, colour };
  }));
}
// Nulls where a value is missing for longer than the step and what the panel says.
function gapped(values, look) {
  const out = [], gap = Math.max(told.step, (look["custom.insertNulls"] || 0) / 1000) * 1.01;
  values.forEach(([t, v], n) => {
    if (n && t - values[n - 1][0] > gap) out.push([t - 1e-3, null]);
    out.push([t, v]);
  });
  return out;
}
function frame(box, extra) {
  const axis = { gridcolor: style("--line"), zeroline: false, color: style("--soft"), tickfont: { size: 10 } };
  return { margin: { l: 52, r: 8, t: 4, b: 20 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false,
    font: { color: style("--ink"), size: 11 },
    xaxis: { ...axis, type: "date", tickformat: told.end - told.begin > 2 * 86400 ? "%b %-d" : "%H:%M", nticks: Math.max(3, Math.floor(box.clientWidth / 90)), range: [time(told.begin), time(told.end)] }, yaxis: { ...axis, rangemode: "tozero" },
    shapes: marks(), ...extra(axis) };
}
const marks = () => told.marks.flatMap(({ color, result }) => result.flatMap(({ values }) => {
  const starts = values.filter(([t], n) => n === 0 || t - values[n - 1][0] > told.step * 1.5);
  return starts.map(([t]) => ({ type: "line", x0: time(t), x1: time(t), yref: "paper", y0: 0, y1: 1, line: { color, width: 1, dash: "dot" } }));
}));
function ticks(most, unit) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough || 1)), step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const at = []; for (let v = 0; v <= most * 1.0001; v += step) at.push(v);
  return { tickvals: at, ticktext: at.map((v) => format(v, unit)) };
}

// The legend takes at most a third of the height, as Grafana's, which can be scrolled then. Returns where to plot.
function withLegend(box, every, place) {
  box.classList.add("drawn", place);
  const keys = every.map(({ name, colour, look }) => `<span><i style="border-top-style:${look["custom.lineStyle.fill"] ? "dashed" : "solid"};border-color:${colour}"></i>${name}</span>`);
  box.innerHTML = `<div class="plot"></div><div class="legend">${keys.join("")}</div>`;
  return box.firstElementChild;
}

const DRAW = {
  timeseries(panel, box) {
    const every = seriesOf(panel), { defaults } = panel.fieldConfig, stacking = defaults.custom.stacking?.mode;
    const shares = stacking === "percent", bars = defaults.custom.drawStyle === "bars";
    const limit = defaults.custom.thresholdsStyle ? defaults.thresholds.steps[1] : null;
    const traces = every.map(({ values, name, look, colour }) => {
      const points = stacking ? values : gapped(values, look);
      const dash = look["custom.lineStyle.fill"] === "dash";
      return { name, x: points.map(([t]) => time(t)), y: points.map(([, v]) => v), type: bars ? "bar" : "scatter", mode: "lines", connectgaps: false,
        line: { width: stacking ? 0 : 1.2, color: colour, dash: dash ? "dash" : "solid" }, marker: { color: colour }, fill: stacking ? undefined : "none",
        fillcolor: colour + (stacking ? "bf" : "0f"), stackgroup: stacking && !bars ? "one" : undefined, groupnorm: shares ? "fraction" : undefined };
    });
    let most = defaults.max ?? Math.max(1e-9, limit?.value || 0, ...every.flatMap(({ values }) => values.map(([, v]) => v)));
    if (stacking === "normal") {
      const sums = {}; every.forEach(({ values }) => values.forEach(([t, v]) => { sums[t] = (sums[t] || 0) + v; }));
      most = Math.max(1e-9, ...Object.values(sums));
    }
    const layout = frame(box, (axis) => ({ barmode: "stack", yaxis: { ...axis, range: [0, most * (defaults.max ? 1 : 1.05)], ...ticks(most, defaults.unit) } }));
    if (limit) layout.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit.value, y1: limit.value, line: { color: limit.color, width: 1.5, dash: "dash" } });
    Plotly.newPlot(withLegend(box, every, panel.options.legend.placement), traces, layout, { staticPlot: true });
  },
  "state-timeline"(panel, box) {
    const every = seriesOf(panel), traces = [], notes = [];
    every.forEach(({ values, name, look }, row) => {
      const runs = [], gap = Math.max(told.step, look["custom.insertNulls"] / 1000) * 1.01;
      values.forEach(([t, v], n) => {
        const last = runs.at(-1);
        if (last && t - values[n - 1][0] <= gap) { last.end = t; if (last.v === v) return; runs.push({ v, begin: t, end: t + told.step }); }
        else runs.push({ v, begin: t, end: t + told.step });
      });
      for (const { v, begin, end } of runs) {
        const map = mapped(look, v), width = (end - begin) * 1000;
        traces.push({ type: "bar", orientation: "h", base: [time(begin)], x: [width], y: [name], marker: { color: map?.color || "#888" }, showlegend: false });
        if ((end - begin) / (told.end - told.begin) * box.clientWidth > (map?.text.length || 3) * 7)
          notes.push({ x: time(begin), y: name, text: map?.text ?? v, showarrow: false, xanchor: "left", font: { size: 10, color: ink(map?.color || "#888888") } });
      }
    });
    const names = every.map(({ name }) => name);
    const layout = frame(box, (axis) => ({ barmode: "overlay", bargap: 0.2, showlegend: false, annotations: notes, margin: { l: 10 + 6.9 * Math.max(4, ...names.map((n) => n.length)), r: 8, t: 4, b: 20 },
      yaxis: { ...axis, type: "category", categoryarray: names.slice().reverse(), categoryorder: "array" } }));
    Plotly.newPlot(box, traces, layout, { staticPlot: true });
  },
  heatmap(panel, box) {
    const every = seriesOf(panel).map((each) => ({ ...each, le: +each.metric.le.replace("+Inf", "Infinity") })).sort((a, b) => a.le - b.le);
    const times = [...new Set(every.flatMap(({ values }) => values.map(([t]) => t)))].sort((a, b) => a - b);
    const sums = every.map(({ values }) => new Map(values));
    const cells = sums.map((row, n) => times.map((t) => Math.max(0, (row.get(t) ?? 0) - (n ? sums[n - 1].get(t) ?? 0 : 0)) || null));
    const kept = cells.map((row, n) => n).filter((n) => cells[n].some((v) => v));
    const [low, high] = [Math.max(0, (kept[0] ?? 0) - 1), (kept.at(-1) ?? 0) + 1];
    const labels = every.map(({ le }) => le === Infinity ? "∞" : format(le, "s"));
    const layout = frame(box, (axis) => ({ showlegend: false, yaxis: { ...axis, type: "category" } }));
    Plotly.newPlot(box, [{ type: "heatmap", x: times.map(time), y: labels.slice(low, high + 1), z: cells.slice(low, high + 1).map((row) => row.map((v) => v && Math.sqrt(v))),
      colorscale: [[0, "#7f2704"], [0.5, "#f16913"], [1, "#fff5eb"]], showscale: false, xgap: 0, ygap: 1 }], layout, { staticPlot: true });
  },
  stat(panel, box) {
    const every = seriesOf(panel).map((each) => ({ ...each, last: each.values.at(-1)[1] }));
    box.innerHTML = `<div class="stats">${every.map(({ name, look, last }) => {
      const map = mapped(look, last), colour = map?.color || threshold(look, last);
      const looked = map ? `background:${colour};color:${ink(colour)}` : `color:${colour}`;
      return `<div class="stat${map ? " word" : ""}" style="${looked}">${every.length > 1 ? `<small>${name}</small>` : ""}${map?.text ?? format(last, look.unit)}</div>`;
    }).join("")}</div>`;
  },
  bargauge(panel, box) {
    const every = seriesOf(panel).map((each) => ({ ...each, last: each.values.at(-1)[1] })).sort((a, b) => b.last - a.last);
    const most = panel.fieldConfig.defaults.max ?? Math.max(...every.map(({ last }) => last));
    box.innerHTML = `<div class="gauges">` + every.map(({ name, look, last }) => `<div class="gauge"><span>${name}</span><div><i style="width:${100 * last / most}%;background:${look["color.fixedColor"] || threshold(look, last)}"></i></div><b>${format(last, look.unit)}</b></div>`).join("") + "</div>";
  },
  table(panel, box) {
    const answers = told.panels[panel.id], several = answers.length > 1, rows = new Map();
    for (const { refId, result } of answers) for (const { metric, value } of result) {
      const own = several ? Object.fromEntries(Object.entries(metric).filter(([k]) => ["instance", "engine", "gpu"].includes(k))) : metric;
      const key = JSON.stringify(own), row = rows.get(key) || {};
      rows.set(key, { ...row, ...metric, [several ? `Value #${refId}` : "Value"]: +value[1] });
    }
    const { excludeByName, renameByName } = panel.transformations.at(-1).options;
    const found = [...rows.values()].map((row) => Object.fromEntries(Object.entries(row).filter(([k]) => !excludeByName[k]).map(([k, v]) => [renameByName[k] ?? k, v])));
    const { indexByName } = panel.transformations.at(-1).options, renamed = Object.values(renameByName);
    const place = (column) => indexByName?.[column] ?? renamed.indexOf(column) + (indexByName ? 99 : 0);
    const columns = [...new Set(found.flatMap(Object.keys))].sort((a, b) => place(a) - place(b));
    const sort = panel.options.sortBy?.[0];
    const compared = (a, b) => typeof a === "string" ? (a < b ? -1 : +(a > b)) : (a ?? -Infinity) - (b ?? -Infinity);
    if (sort) found.sort((a, b) => (sort.desc ? -1 : 1) * compared(a[sort.displayName], b[sort.displayName]));
    const cell = (row, column) => {
      const value = row[column], look = looks(panel.fieldConfig, column);
      if (value === undefined) return "<td></td>";
      if (typeof value === "string") return `<td class="${look.links ? "link" : ""}">${value}</td>`;
      const map = mapped(look, value), colour = look["custom.cellOptions.type"] ? map?.color || threshold(look, value) : "";
      const filled = look["custom.cellOptions.type"] === "color-background";
      return `<td style="${filled ? `background:${colour};color:${ink(colour)}` : `color:${colour}`}">${map?.text ?? format(value, look.unit)}</td>`;
    };
    box.innerHTML = `<table><tr>${columns.map((c) => `<th>${c}</th>`).join("")}</tr>${found.map((row) => `<tr>${columns.map((c) => cell(row, c)).join("")}</tr>`).join("")}</table>`;
  },
};

document.body.insertAdjacentHTML("afterbegin", `<h1>${dashboard.title} <small>${time(told.begin).slice(0, 16).replace("T", " ")} to ${time(told.end).slice(0, 16).replace("T", " ")}</small></h1>`);
for (const panel of dashboard.panels) {
  const { x, y, w, h } = panel.gridPos, area = `grid-area:${y + 1}/${x + 1}/span ${h}/span ${w}`;
  const main = document.querySelector("main");
  if (panel.type === "row") { main.insertAdjacentHTML("beforeend", `<div class="row" style="${area}">${panel.title}</div>`); continue; }
  main.insertAdjacentHTML("beforeend", `<section style="${area}"><h2>${panel.title}</h2><div></div></section>`);
  const box = main.lastElementChild.lastElementChild;
  if (!told.panels[panel.id].some(({ result }) => result.length)) box.innerHTML = `<div class="empty">${panel.fieldConfig.defaults.noValue ?? "No data"}</div>`;
  else DRAW[panel.type](panel, box);
}
document.documentElement.dataset.drawn = "yes";

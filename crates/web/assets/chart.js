// Score over time. Shapes, not colours alone, tell the lanes apart; what is below or above the
// chart stands at its edge with an arrow.

import { h, replace, s } from "./dom.js";
import { duration, isBetter, OUTCOMES, PHASES, score } from "./format.js";

const SHAPES = ["square", "triangle", "diamond", "pentagon", "hexagon"];

function polygon(sides, radius, turn) {
  const points = [];
  for (let i = 0; i < sides; i += 1) {
    const angle = turn + (i * 2 * Math.PI) / sides;
    points.push(`${(radius * Math.sin(angle)).toFixed(2)},${(-radius * Math.cos(angle)).toFixed(2)}`);
  }
  return s("polygon", { points: points.join(" ") });
}

export function shape(name, radius = 5) {
  switch (name) {
    case "circle": return s("circle", { r: radius });
    case "square": return s("rect", { x: -radius * 0.9, y: -radius * 0.9, width: radius * 1.8, height: radius * 1.8 });
    case "triangle": return polygon(3, radius * 1.25, 0);
    case "diamond": return polygon(4, radius * 1.25, 0);
    case "pentagon": return polygon(5, radius * 1.15, 0);
    case "hexagon": return polygon(6, radius * 1.15, 0);
    case "star": {
      const points = [];
      for (let i = 0; i < 10; i += 1) {
        const reach = i % 2 ? radius * 0.6 : radius * 1.45;
        points.push(`${(reach * Math.sin((i * Math.PI) / 5)).toFixed(2)},${(-reach * Math.cos((i * Math.PI) / 5)).toFixed(2)}`);
      }
      return s("polygon", { points: points.join(" ") });
    }
    default: return s("path", { d: `M${-radius} ${-radius}L${radius} ${radius}M${-radius} ${radius}L${radius} ${-radius}`, class: "stroke" });
  }
}

// The group that a solution belongs to: its name and shape.
export function group(solution) {
  const path = /path-(\d+)/.exec(solution.id);
  if (path) return { key: `path-${path[1]}`, name: `Path ${path[1]}`, shape: SHAPES[Number(path[1]) % SHAPES.length], tone: Number(path[1]) % 5 };
  if (solution.kind === "ensemble") return { key: "ensemble", name: "Ensemble", shape: "star", tone: "ensemble" };
  return { key: "initial", name: "Initial solutions", shape: "circle", tone: "initial" };
}

function ticks(low, high, count) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((it) => it * size).find((it) => it >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return { found, digits: Math.max(0, Math.min(8, -Math.floor(Math.log10(step)) + (step / size === 2.5 ? 1 : 0))) };
}

function timeTicks(end, count) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const step = steps.find((it) => end / it <= count) ?? 172800;
  const found = [];
  for (let at = 0; at <= end; at += step) found.push(at);
  return found;
}

function range(values, best) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const [q1, q3] = [at(0.25), at(0.75)];
  const reach = 2.5 * (q3 - q1 || Math.abs(best) * 0.02 || 1e-3);
  const kept = sorted.length < 4 ? sorted : sorted.filter((it) => it >= q1 - reach && it <= q3 + reach);
  let low = Math.min(best, ...kept), high = Math.max(best, ...kept);
  const pad = (high - low) * 0.1 || Math.abs(high) * 0.05 || 0.5;
  low -= pad;
  high += pad;
  return [low, high];
}

export class Chart {
  constructor(open) {
    this.open = open;
    this.element = h("figure", { class: "chart" });
    this.current = undefined;
    new ResizeObserver(() => { if (this.live && this.element.clientWidth !== this.width) this.draw(this.live); }).observe(this.element);
  }

  draw(live) {
    this.live = live;
    const { state } = live;
    const width = this.width = this.element.clientWidth || 800;
    const isNarrow = width < 560;
    const height = isNarrow ? 260 : 320;
    const edge = { left: isNarrow ? 46 : 62, right: 14, top: 42, bottom: 34 };
    const direction = state.subject?.direction ?? "maximize";
    const judged = state.solutions.filter((it) => it.ended_seconds !== null && ["candidate", "merged", "checked", "refined", "ensemble"].includes(it.kind));
    const scored = judged.filter((it) => it.score !== null).sort((a, b) => a.ended_seconds - b.ended_seconds);
    const failed = judged.filter((it) => it.outcome === "failed");
    if (!scored.length) {
      replace(this.element, h("p", { class: "quiet empty" }, failed.length
        ? "No script has scored yet. What failed is listed under Solutions."
        : "The first score will appear here."));
      return;
    }
    const steps = [];
    let best;
    for (const it of scored) {
      if (best === undefined || isBetter(it.score, best, direction)) {
        best = it.score;
        steps.push([it.ended_seconds, best]);
      }
    }
    const [low, high] = range(scored.map((it) => it.score), best);
    const end = Math.max(live.elapsed(), ...judged.map((it) => it.ended_seconds), 1);
    const x = (seconds) => edge.left + (seconds / end) * (width - edge.left - edge.right);
    const floor = height - edge.bottom;
    const y = (value) => floor - ((value - low) / (high - low)) * (floor - edge.top);
    const clamp = (value) => Math.max(edge.top + 4, Math.min(floor - 4, y(value)));

    const bands = state.phases.filter((it) => it.outcome !== "skipped").map((phase, index) => {
      const from = x(phase.began_seconds), to = x(phase.ended_seconds ?? end);
      const entry = PHASES.find(([id]) => id === phase.phase);
      const room = to - from;
      const label = room > 130 ? `${entry[2]} · ${entry[1]}` : room > 54 ? entry[2] : room > 14 ? entry[2].replace("Phase ", "") : "";
      return s("g", {}, s("rect", { class: index % 2 ? "band odd" : "band", x: from, y: edge.top - 34, width: Math.max(1, room), height: floor - edge.top + 34 }),
        label !== "" && (room > 54 || label.length < 3) ? s("text", { class: "phase", x: from + Math.min(8, room / 4), y: edge.top - 18 }, label) : null);
    });
    const scale = ticks(low, high, isNarrow ? 4 : 5);
    const grid = scale.found.map((value) => s("g", { class: "grid" },
      s("line", { x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }),
      s("text", { x: edge.left - 8, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(scale.digits).replace("-", "−"))));
    const times = timeTicks(end, isNarrow ? 4 : 8).map((at) => s("g", { class: "grid" },
      s("line", { class: "tick", x1: x(at), x2: x(at), y1: floor, y2: floor + 5 }),
      s("text", { x: x(at), y: floor + 20, "text-anchor": at === 0 ? "start" : "middle" }, at === 0 ? "0" : duration(at).replace(/\.0 s/, " s"))));
    let d = "";
    for (const [at, value] of steps) d += d ? `H${x(at).toFixed(1)}V${clamp(value).toFixed(1)}` : `M${x(at).toFixed(1)} ${clamp(value).toFixed(1)}`;
    const line = s("path", { class: "best", d: `${d}H${x(end).toFixed(1)}` });

    const ancestors = new Set(state.ancestors);
    const all = [...scored, ...failed].sort((a, b) => a.ended_seconds - b.ended_seconds);
    const marks = all.map((solution) => {
      const kind = group(solution);
      const isOut = solution.score !== null && (solution.score < low || solution.score > high);
      const isKept = solution.outcome !== "rejected" || ancestors.has(solution.id);
      const top = solution.score === null ? floor - 7 : clamp(solution.score);
      const label = `${solution.name}: ${solution.score === null ? "failed" : score(solution.score)}, ${OUTCOMES[solution.outcome]}`;
      const mark = s("g", {
        class: `mark tone-${kind.tone} ${isKept ? "kept" : "not-kept"} ${solution.score === null ? "failed" : ""}`, role: "button",
        tabindex: "-1", "data-key": `mark-${solution.id}`, "data-id": solution.id, "aria-label": label,
        transform: `translate(${x(solution.ended_seconds).toFixed(1)} ${top.toFixed(1)})`,
        onclick: () => this.open(solution.id),
        onpointerenter: () => this.tell(solution, x(solution.ended_seconds), top),
        onpointerleave: () => this.tell(),
        onfocus: () => { this.current = solution.id; this.tell(solution, x(solution.ended_seconds), top); },
        onblur: () => this.tell(),
      }, s("circle", { class: "reach", r: 11 }), solution.score === null ? shape("cross", 3.5) : shape(kind.shape, isNarrow ? 4 : 5),
      isOut ? s("text", { class: "arrow", y: solution.score > high ? -8 : 15, "text-anchor": "middle" }, solution.score > high ? "↑" : "↓") : null);
      return mark;
    });
    const now = marks.find((it) => it.dataset.id === this.current) ?? marks[marks.length - 1];
    now?.setAttribute("tabindex", "0");
    const move = (event) => {
      const at = marks.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: marks.length - 1 }[event.key];
      if (at >= 0 && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        this.open(marks[at].dataset.id);
      } else if (at >= 0 && to !== undefined && marks[to]) {
        event.preventDefault();
        marks[at].setAttribute("tabindex", "-1");
        marks[to].setAttribute("tabindex", "0");
        marks[to].focus();
      }
    };
    const picture = s("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "group", onkeydown: move, "data-points": String(scored.length),
      "aria-label": `Score over time, ${direction === "minimize" ? "lower" : "higher"} is better: ${scored.length} scores, best ${score(best)}. Arrow keys go through them.`,
    }, bands, grid, s("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: floor, y2: floor }), times, line, marks);

    const order = (key) => ["initial", "path", "ensemble"].findIndex((it) => key.startsWith(it));
    const groups = new Map(all.filter((it) => it.score !== null).map((it) => [group(it).key, group(it)]));
    const legend = [...groups.values()].sort((a, b) => order(a.key) - order(b.key) || a.key.localeCompare(b.key)).map((it) => h("li", {}, s("svg", { class: `mark tone-${it.tone} kept`, width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" }, shape(it.shape)), it.name));
    legend.push(h("li", {}, s("svg", { width: 22, height: 16, viewBox: "0 -8 22 16", "aria-hidden": "true" }, s("path", { class: "best", d: "M1 4H11V-4H21" })), "Best so far"));
    if (all.some((it) => it.outcome === "rejected")) legend.push(h("li", {}, s("svg", { class: "mark tone-initial not-kept", width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" }, shape("circle")), "Outline: not kept"));
    if (failed.length) legend.push(h("li", {}, s("svg", { class: "mark failed", width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" }, shape("cross", 3.5)), "Failed"));
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    replace(this.element, h("div", { class: "canvas" }, picture, this.tip),
      h("figcaption", {}, h("ul", { class: "legend" }, legend)));
  }

  tell(solution, left, top) {
    if (!this.tip) return;
    this.tip.hidden = !solution;
    if (!solution) return;
    this.tip.replaceChildren(
      h("strong", {}, solution.score === null ? "failed" : score(solution.score)), " ",
      h("span", {}, solution.name), h("span", { class: "quiet" }, ` · ${OUTCOMES[solution.outcome]} · ${duration(solution.ended_seconds)}`));
    this.tip.style.left = `${Math.max(4, Math.min(this.width - this.tip.offsetWidth - 4, left - this.tip.offsetWidth / 2))}px`;
    this.tip.style.top = `${top < 70 ? top + 16 : top - this.tip.offsetHeight - 12}px`;
  }
}

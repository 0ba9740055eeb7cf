// Everything that was tried, from the retrieved models to the final solution. Drawn like the history
// of a repository: what was kept is on the line of its lane, what was not is a twig beside it, and
// the line that leads to the submission is thick. For the keyboard it is a tree: up and down go
// through the rows, left to what a solution was made from, right to what was made from it.

import { h, replace, s } from "./dom.js";
import { duration, isBetter, KINDS, money, outcome, score, signed } from "./format.js";
import { group, shape } from "./chart.js";

const HEADINGS = [[/^model-/, "Retrieved models"], [/^phase1\//, "Phase 1 · Initial solution"], [/^phase2\//, "Phase 2 · Refinement"],
  [/^phase3\//, "Phase 3 · Ensemble"], [/^finalization/, "Finalization"]];

const KEPT = ["accepted", "submitted", "retrieved", "scored"];

// What is being tried counts as kept until it is judged; what a run left undone does not.
const isKept = (solution, ancestors, isRunning) => ancestors.has(solution.id)
  || (solution.kind !== "early_submission" && (KEPT.includes(solution.outcome) || (isRunning && solution.outcome === "open")));

function column(solution) {
  const found = /(?:model|candidate|path)-(\d+)/.exec(solution.id);
  return Math.min(7, found ? Number(found[1]) : 0);
}

export class Tree {
  constructor(live, open) {
    this.live = live;
    this.open = open;
    this.current = undefined;
    this.onlyKept = false;
    this.lines = s("svg", { class: "lines", "aria-hidden": "true" });
    this.rows = h("div", { class: "rows", role: "tree", "aria-label": "Solutions", onkeydown: (event) => this.key(event) });
    const toggle = h("input", { type: "checkbox", id: "only-kept", onchange: () => { this.onlyKept = toggle.checked; this.update(); } });
    this.note = h("p", { class: "quiet" });
    this.element = h("section", { class: "card tree-card" },
      h("div", { class: "between" }, h("h2", {}, "Solutions"), h("label", { class: "check", for: "only-kept" }, toggle, "Only what was kept")),
      this.note, h("div", { class: "tree" }, this.lines, this.rows));
    new ResizeObserver(() => this.connect()).observe(this.rows);
  }

  shown() {
    const { state } = this.live;
    const ancestors = new Set(state.ancestors);
    const order = (it) => { const at = HEADINGS.findIndex(([pattern]) => pattern.test(it.id)); return at < 0 ? HEADINGS.length : at; };
    const shown = state.solutions.filter((it) => !this.onlyKept || isKept(it, ancestors, state.state === "running"));
    return shown.map((it, index) => [order(it), index, it]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((it) => it[2]);
  }

  update() {
    const { state } = this.live;
    const ancestors = new Set(state.ancestors);
    const shown = this.shown();
    const ids = new Set(shown.map((it) => it.id));
    const levels = new Map();
    const level = (it) => {
      if (!levels.has(it.id)) {
        levels.set(it.id, 1); // a damaged journal may have a circle
        const parent = it.parents.map((id) => state.byId.get(id)).find((known) => known && ids.has(known.id));
        levels.set(it.id, parent ? level(parent) + 1 : 1);
      }
      return levels.get(it.id);
    };
    if (!ids.has(this.current)) this.current = shown.find((it) => ancestors.has(it.id))?.id ?? shown[0]?.id;
    const nodes = [];
    let heading;
    for (const it of shown) {
      const title = HEADINGS.find(([pattern]) => pattern.test(it.id))?.[1] ?? "";
      if (title !== heading) {
        heading = title;
        nodes.push(h("p", { class: "heading", role: "presentation" }, title));
      }
      nodes.push(this.row(it, level(it), ancestors));
    }
    this.note.textContent = shown.length ? "Enter opens a solution. The thick line leads to the submission." : "";
    replace(this.rows, nodes.length ? nodes : h("p", { class: "quiet empty", role: "presentation" }, "Nothing has been tried yet."));
    this.connect();
  }

  row(it, level, ancestors) {
    const { state } = this.live;
    const direction = state.subject?.direction ?? "maximize";
    const parent = it.parents.map((id) => state.byId.get(id)).find((known) => known && known.score !== null);
    let delta = null;
    if (parent && it.score !== null && it.kind !== "final" && it.kind !== "early_submission") {
      const gain = it.score - parent.score;
      const tone = gain === 0 ? "same" : isBetter(it.score, parent.score, direction) ? "better" : "worse";
      delta = h("span", { class: `delta ${tone}`, title: "against what it was made from" }, `${{ same: "=", better: "▲", worse: "▼" }[tone]} ${signed(gain, it.score)}`);
    }
    const words = it.outcome === "failed" ? it.error : it.plan;
    const details = [it.cost_usd ? money(it.cost_usd) : "", it.script_seconds ? duration(it.script_seconds) : ""].filter(Boolean).join(" · ");
    return h("div", {
      class: `row outcome-${it.outcome} ${words ? "" : "no-plan"} ${ancestors.has(it.id) ? "ancestor" : ""}`, role: "treeitem", "aria-level": String(level),
      "aria-selected": String(it.id === this.current), tabindex: it.id === this.current ? "0" : "-1", "data-key": `row-${it.id}`, "data-id": it.id,
      "aria-label": `${it.name}, ${KINDS[it.kind]}, ${it.score === null ? "" : `score ${score(it.score)}, `}${outcome(it, state.state === "running")}${ancestors.has(it.id) ? ", leads to the submission" : ""}`,
      onclick: () => { this.select(it.id); this.open({ solution: it.id }); }, onfocus: () => this.select(it.id),
    }, h("span", { class: "name" }, it.name),
    h("span", { class: "plan quiet" }, words ? words.split("\n").find((line) => line.trim()) ?? "" : ""),
    h("span", { class: "details quiet" }, details), delta ?? h("span", { class: "delta" }),
    h("span", { class: "value" }, it.score === null ? "" : score(it.score)),
    ["retrieved", "scored"].includes(it.outcome) ? h("span") : h("span", { class: `pill ${it.outcome}` }, outcome(it, state.state === "running")));
  }

  // Draws the lines between the rows, which must be laid out already.
  connect() {
    const { state } = this.live;
    if (!state || !this.rows.isConnected) return;
    const isNarrow = this.rows.clientWidth < 640;
    const step = isNarrow ? 14 : 20;
    const rows = new Map([...this.rows.querySelectorAll(".row")].map((it) => [it.dataset.id, it]));
    const ancestors = new Set(state.ancestors);
    const kept = (solution) => isKept(solution, ancestors, state.state === "running");
    let widest = 0;
    const at = new Map();
    for (const [id, row] of rows) {
      const solution = state.byId.get(id);
      if (!solution) continue;
      const lane = 12 + column(solution) * step;
      const x = lane + (kept(solution) ? 0 : step * 0.55);
      widest = Math.max(widest, x);
      at.set(id, { solution, lane, x, y: row.offsetTop + row.offsetHeight / 2 });
    }
    this.rows.style.setProperty("--gutter", `${widest + 16}px`);
    const thin = [], thick = [], dots = [];
    for (const { solution, lane, x, y } of at.values()) {
      for (const id of solution.parents) {
        const parent = at.get(id);
        if (!parent || parent.y >= y) continue;
        const bend = 16;
        let d = `M${parent.x} ${parent.y}`;
        if (parent.x !== lane) d += `C${parent.x} ${parent.y + bend} ${lane} ${parent.y + 4} ${lane} ${Math.min(y, parent.y + bend * 1.6)}`;
        d += x === lane ? `V${y}` : `V${y - 12}Q${lane} ${y} ${x} ${y}`;
        const leads = ancestors.has(id) && ancestors.has(solution.id);
        (leads ? thick : thin).push(s("path", { class: leads ? "thick" : "thin", d }));
      }
      const kind = group(solution);
      const name = solution.outcome === "failed" ? "cross" : kind.shape;
      dots.push(s("g", { class: `mark tone-${kind.tone} ${kept(solution) ? "kept" : "not-kept"} ${solution.outcome}`, transform: `translate(${x} ${y})` },
        s("circle", { class: "halo", r: 7 }), shape(name, name === "cross" ? 3.5 : 4.5)));
    }
    this.lines.setAttribute("width", widest + 16);
    this.lines.setAttribute("height", this.rows.offsetHeight);
    this.lines.replaceChildren(...thin, ...thick, ...dots);
  }

  select(id) {
    if (this.current === id) return;
    for (const row of this.rows.querySelectorAll(".row")) {
      const isIt = row.dataset.id === id;
      row.tabIndex = isIt ? 0 : -1;
      row.setAttribute("aria-selected", String(isIt));
    }
    this.current = id;
  }

  go(id) {
    const row = id && this.rows.querySelector(`[data-id="${CSS.escape(id)}"]`);
    if (!row) return;
    this.select(id);
    row.focus();
    row.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const rows = [...this.rows.querySelectorAll(".row")];
    const at = rows.findIndex((it) => it.dataset.id === this.current);
    const { state } = this.live;
    const solution = state.byId.get(this.current);
    const moves = {
      ArrowDown: () => rows[at + 1]?.dataset.id,
      ArrowUp: () => rows[at - 1]?.dataset.id,
      ArrowLeft: () => solution?.parents.find((id) => rows.some((it) => it.dataset.id === id)),
      ArrowRight: () => rows.find((it) => state.byId.get(it.dataset.id)?.parents.includes(this.current))?.dataset.id,
      Home: () => rows[0]?.dataset.id,
      End: () => rows.at(-1)?.dataset.id,
    };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.current) this.open({ solution: this.current });
    } else if (moves[event.key]) {
      event.preventDefault();
      this.go(moves[event.key]());
    }
  }
}

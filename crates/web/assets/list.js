// All runs of a folder.

import { ask, h, link, replace } from "./dom.js";
import { duration, moment, money, PHASES, score, STATES } from "./format.js";

export class List {
  constructor(go) {
    this.go = go;
    this.element = h("section", { class: "stack" }, h("p", { class: "quiet" }, "Loading…"));
    this.timer = setInterval(() => { if (!document.hidden) this.update(); }, 3000);
    this.update();
  }

  close() {
    clearInterval(this.timer);
  }

  async update() {
    try {
      const { folder, runs } = await ask("/api/runs");
      if (folder === null && runs.length === 1) {
        this.close();
        this.go(runs[0].name);
        return;
      }
      const text = JSON.stringify(runs);
      if (text === this.shown) return;
      this.shown = text;
      replace(this.element, h("h1", {}, "Runs"), h("p", { class: "quiet" }, folder ?? ""),
        runs.length ? h("ul", { class: "runs" }, runs.map((it) => this.run(it))) : h("p", { class: "quiet empty" }, "There are no runs in this folder yet."));
    } catch (error) {
      this.shown = undefined;
      replace(this.element, h("p", { class: "error" }, `The server does not answer: ${error.message}`));
    }
  }

  run(it) {
    const state = it.problem ? "damaged" : it.condition;
    const phase = it.condition === "running" ? PHASES.find(([id]) => id === it.phase)?.[1] : "";
    const best = it.condition === "finished" ? it.selected ?? it.best : it.best;
    return h("li", {}, link([
      h("div", { class: "run-name" }, h("strong", {}, it.competition_id || it.name), h("span", { class: `state ${state}` }, STATES[state]), phase ? h("span", { class: "quiet" }, phase) : null),
      h("div", { class: "run-score" }, h("span", { class: "value" }, score(best)), h("span", { class: "quiet" }, it.metric)),
      h("p", { class: "quiet" }, [it.name, moment(it.began), duration(it.elapsed_seconds), `${it.scripts} scripts`, it.cost_usd === null ? "" : money(it.cost_usd), it.problem && it.problem.slice(0, 160)].filter(Boolean).join(" · ")),
    ], `#/run/${encodeURIComponent(it.name)}`, { "data-key": `run-${it.name}`, class: "card run" }));
  }
}

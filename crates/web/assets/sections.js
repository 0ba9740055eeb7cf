// The other parts of a run: ablations, agents, setup and problems.

import { ask, card, facts, h, replace, wide } from "./dom.js";
import { bytes, clock, duration, lane, money, place, PHASES, score, signed, work } from "./format.js";

export class Ablations {
  constructor(live, open) {
    this.live = live;
    this.open = open;
    this.element = h("div", { class: "stack" });
  }

  update() {
    const { state } = this.live;
    if (!state.ablations.length) {
      replace(this.element, card("Ablation ledger", {}, h("p", { class: "quiet" }, "Phase 2 begins each step with a study of what the parts of the solution contribute. There is none yet.")));
      return;
    }
    const intro = card("Ablation ledger", {}, h("p", { class: "quiet" }, "What each part of a solution contributes: how much worse the score gets without it. The part that matters is then refined."));
    const sorted = [...state.ablations].sort((a, b) => a.outer - b.outer || a.path - b.path);
    replace(this.element, intro, h("div", { class: "columns" }, sorted.map((it) => this.study(it))));
  }

  study(it) {
    const most = Math.max(...it.effects.map((effect) => Math.abs(effect.effect ?? 0)), 1e-12);
    const rows = it.effects.map((effect) => {
      const size = Math.abs(effect.effect ?? 0) / most;
      const helps = (effect.effect ?? 0) >= 0;
      return h("tr", {}, h("th", { scope: "row" }, effect.component),
        h("td", { class: "effect" }, h("div", { class: "diverging", "aria-hidden": "true" },
          h("div", { class: "left" }, helps ? null : wide(h("span", { class: "hurts" }), size)), h("div", { class: "right" }, helps ? wide(h("span", { class: "helps" }), size) : null))),
        h("td", { class: "number" }, effect.effect === null ? "" : signed(effect.effect, effect.score)), h("td", { class: "number quiet" }, score(effect.score)),
        h("td", { class: "quiet verdict" }, effect.effect === 0 ? "no effect" : helps ? "helps" : "better without"));
    });
    const gain = it.before === null ? "" : it.after === null ? `score before ${score(it.before)}` : it.before === it.after ? `score ${score(it.before)}, no gain` : `score before ${score(it.before)}, after refining ${score(it.after)}`;
    // The study runs the solution again, and says what it scores as it is: mostly what it had.
    const unchanged = it.baseline === null || score(it.baseline) === score(it.before) ? "" : `in the study ${score(it.baseline)}`;
    return card(`Path ${it.path}, outer ${it.outer}`, {},
      h("p", { class: "quiet" }, [gain, unchanged, it.skipped ? `skipped: ${it.skipped}` : ""].filter(Boolean).join(" · ")),
      rows.length ? h("div", { class: "scroller" }, h("table", { class: "effects" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Part"), h("th", { scope: "col" }, "Effect"), h("th", { scope: "col", class: "number" }, "Worse by"), h("th", { scope: "col", class: "number" }, "Without it"), h("th", { scope: "col" }))), h("tbody", {}, rows)))
        : h("p", { class: "quiet" }, it.script ? "The study printed no figures that can be read." : "The study is being written."),
      it.summary ? h("details", {}, h("summary", {}, "What the study found"), h("p", { class: "prose" }, it.summary)) : null,
      it.block ? h("div", { class: "chosen" }, h("h3", {}, "Chosen to be refined"), h("pre", { class: "command" }, it.block), it.plan ? h("p", { class: "prose" }, it.plan) : null) : null);
  }
}

export class Agents {
  constructor(live, open) {
    this.live = live;
    this.open = open;
    this.steps = [];
    this.filter = "";
    this.list = h("div");
    const search = h("input", { type: "search", placeholder: "Filter: coder, path-0, failed…", "aria-label": "Filter the steps", oninput: () => { this.filter = search.value.toLowerCase(); this.draw(); } });
    this.element = card("Agents and scripts", {}, h("p", { class: "quiet" }, "Every call to an agent, with its prompt and reply, and every script that was run, with its output."), search, this.list);
  }

  async update() {
    const { state } = this.live;
    if (this.records === state.records || this.isLoading) return;
    this.isLoading = true;
    try {
      this.records = state.records;
      this.steps = await ask("/api/steps", { run: this.live.name });
      this.draw();
    } catch (error) {
      replace(this.list, h("p", { class: "error" }, error.message));
    } finally {
      this.isLoading = false;
    }
  }

  draw() {
    const words = this.filter.split(/\s+/).filter(Boolean);
    const text = (it) => `${it.key} ${it.role ?? ""} ${it.lane ?? ""} ${it.what === "run" ? "script" : "agent"} ${it.problem ? `failed ${it.problem}` : ""}`.toLowerCase();
    const found = this.steps.filter((it) => it.what !== "other" && words.every((word) => text(it).includes(word)));
    const shown = found.slice(-400).reverse();
    const rows = shown.map((it) => h("tr", { class: it.problem ? "is-bad" : "" },
      h("td", { class: "number quiet" }, clock(it.began_seconds)),
      h("td", {}, h("button", { type: "button", class: "link", "data-key": `step-${it.key}`, onclick: () => this.open({ step: it.key }) }, it.what === "run" ? "script" : (it.role ?? "agent").replaceAll("_", " ")), it.what === "run" ? null : h("span", { class: "quiet" }, ` ${work(it.key)}`), it.problem ? h("span", { class: "problem below" }, it.problem) : null),
      h("td", {}, place(it.key)), h("td", { class: "number" }, it.ended_seconds === null ? "…" : duration(it.ended_seconds - it.began_seconds)),
      h("td", { class: "number" }, it.cost_usd ? money(it.cost_usd) : ""), h("td", { class: "problem" }, it.problem ?? (it.ended_seconds === null ? "in progress" : ""))));
    replace(this.list, h("p", { class: "quiet" }, `${found.length.toLocaleString()} steps${found.length > shown.length ? `, the last ${shown.length} are shown` : ""}, the newest first`),
      h("div", { class: "scroller" }, h("table", { class: "wide" }, h("thead", {}, h("tr", {}, ["Began", "Who", "Where", "Took", "Cost", ""].map((it, index) => h("th", { scope: "col", class: [0, 3, 4].includes(index) ? "number" : "" }, it)))), h("tbody", {}, rows))));
  }
}

const GAPS = (it) => it.replaceAll("_", " ");

export class Setup {
  constructor(live) {
    this.live = live;
    this.element = h("div", { class: "stack" });
  }

  update() {
    const { state } = this.live;
    const { subject } = state;
    if (!subject) {
      replace(this.element, card("Setup", {}, h("p", { class: "quiet" }, "The journal has no beginning.")));
      return;
    }
    const { machine, containment, settings } = subject;
    const tiers = { strong: "strong: namespaces, Landlock and seccomp", fallback: "fallback: Landlock and seccomp without namespaces", limits: "limits only: scripts are not confined", off: "off: scripts are not confined" };
    const gpus = machine.gpus?.gpu_names ?? [];
    const spent = (dollars) => (dollars ? ` · ${money(dollars)}` : "");
    const roles = Object.entries(state.costs.per_role_cost_usd ?? {}).filter(([, dollars]) => dollars > 0).sort((a, b) => b[1] - a[1]);
    replace(this.element,
      card("Task", {}, facts([["Task", subject.competition_id], ["Metric", state.glance.metric], ["Agents", subject.agents], ["Began with", `mle-star ${subject.version}`], ["Run directory", h("code", {}, state.root)], ["Taken up again", state.glance.resumes ? `${state.glance.resumes} times` : ""]]),
        subject.description ? h("details", {}, h("summary", {}, "Description"), h("pre", { class: "prose" }, subject.description)) : null),
      h("div", { class: "columns" },
        card("Sandbox", {}, containment ? [facts([["Tier", tiers[containment.tier] ?? containment.tier], ["Cores per script", containment.cores], ["Memory per script", containment.limits?.memory_bytes ? bytes(containment.limits.memory_bytes) : ""]]),
          containment.gaps?.length ? [h("h3", {}, "What it does not hold"), h("ul", {}, containment.gaps.map((it) => h("li", {}, GAPS(it))))] : h("p", { class: "after" }, "Nothing is known that it does not hold."),
          containment.refused?.length ? [h("h3", {}, "Why no better one"), h("ul", {}, containment.refused.map((it) => h("li", {}, it)))] : null]
          : h("p", { class: "quiet" }, "The record does not say.")),
        card("Machine", {}, facts([["Python", machine.python_version], ["Cores", machine.cores], ["Memory", machine.memory_bytes ? bytes(machine.memory_bytes) : ""], ["Graphics cards", gpus.length ? gpus.join(", ") : "none"]]),
          machine.packages?.length ? h("details", {}, h("summary", {}, `${machine.packages.length} packages`), h("p", { class: "packages" }, machine.packages.map((it) => `${it.name} ${it.version}`).join(", "))) : null)),
      h("div", { class: "columns" },
        card("Time and money", {}, facts([
          ...PHASES.map(([id, name]) => {
            const phase = state.phases.find((it) => it.phase === id);
            const took = phase && phase.ended_seconds !== null && phase.outcome !== "skipped" ? duration(phase.ended_seconds - phase.began_seconds) : "";
            return [name, took && `${took}${spent(state.costs[`${id}_cost_usd`])}`];
          }),
          ["In all", `${duration(this.live.elapsed())}${spent(state.costs.total_cost_usd)}`],
          ["Of which estimated", state.costs.estimated_cost_usd ? money(state.costs.estimated_cost_usd) : ""],
          ...state.lanes.filter((it) => it.cost_usd > 0).map((it) => [lane(it.name), money(it.cost_usd)])]),
        roles.length ? [h("h3", {}, "By role"), facts(roles.map(([role, dollars]) => [role.replaceAll("_", " "), money(dollars)]))] : null),
        card("Settings", {}, facts(Object.entries(settings).map(([name, value]) => [name.replaceAll("_", " "), value === null ? "" : typeof value === "object" ? Object.entries(value).map(([key, part]) => `${key} ${part}`).join(", ") : String(value)])))));
  }
}

export class Problems {
  constructor(live, open) {
    this.live = live;
    this.open = open;
    this.element = h("div");
  }

  update() {
    const { state } = this.live;
    const words = { warning: "Warning", failure: "Failure", fallback: "Fallback" };
    // The same warning comes with every script that a line is in.
    const same = new Map();
    for (const it of [...state.troubles].reverse()) {
      const key = `${it.kind} ${it.message}`;
      if (!same.has(key)) same.set(key, []);
      same.get(key).push(it);
    }
    const where = (it) => {
      const id = [...state.byId.keys()].find((known) => it.place === known || it.place.startsWith(`${known}/`));
      return id === undefined ? place(it.place) : h("button", { type: "button", class: "link", "data-key": `trouble-${it.place}-${it.seconds}`, onclick: () => this.open({ solution: id }) }, place(it.place));
    };
    const items = [...same.values()].map((all) => h("li", { class: all[0].kind },
      h("span", { class: `pill ${all[0].kind}` }, words[all[0].kind]), h("div", {}, h("p", { class: "prose" }, all[0].message),
        all.length < 4 ? all.map((it) => h("p", { class: "quiet" }, where(it), ` · ${clock(it.seconds)} into the run`))
          : h("details", {}, h("summary", {}, `${all.length} times, last at ${clock(all[0].seconds)}`), all.map((it) => h("p", { class: "quiet" }, where(it), ` · ${clock(it.seconds)} into the run`))))));
    replace(this.element, card("Problems", {}, items.length
      ? [h("p", { class: "quiet" }, state.trouble_count > state.troubles.length ? `${state.trouble_count} in all; the first ${state.troubles.length} are kept.` : "Failures that were mended or worked around, and warnings. The run went on."), h("ul", { class: "troubles" }, items)]
      : h("p", { class: "quiet" }, "None so far.")));
  }
}

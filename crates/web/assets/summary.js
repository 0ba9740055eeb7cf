// Where a run is: the first thing that one sees.

import { card, h, link, replace, wide } from "./dom.js";
import { clock, duration, isBetter, lane, money, neat, PHASES, place, score, signed, told, work } from "./format.js";
import { Chart } from "./chart.js";

const MARKS = { ended: "✓", failed: "!", skipped: "–", open: "●" };

export class Summary {
  constructor(live, open) {
    this.live = live;
    this.open = open;
    this.top = h("div", { class: "hero" });
    this.phases = h("div");
    this.now = h("div", { class: "columns" });
    this.events = h("div");
    this.chart = new Chart((id) => open({ solution: id }));
    this.element = h("div", { class: "stack" }, this.top, this.phases,
      card("Score over time", { class: "card chart-card" }, this.chart.element), this.now, this.events);
  }

  update() {
    this.draw();
    this.chart.draw(this.live);
    replace(this.events, card("Latest events", {}, this.log()));
  }

  // What the clock alone changes.
  tick() {
    if (this.live.state.state === "running") this.draw();
  }

  draw() {
    replace(this.top, this.outcome(), this.budget());
    replace(this.phases, this.stepper());
    replace(this.now, this.live.state.state === "running" ? this.lanes() : this.ending());
  }

  outcome() {
    const { state } = this.live;
    const { subject, glance } = state;
    const isMinimized = subject?.direction === "minimize";
    const shown = state.state === "finished" ? state.selected?.score ?? glance.best : glance.best;
    const first = state.solutions.find((it) => it.kind === "candidate" && it.score !== null);
    const gain = first && shown !== null && shown !== undefined ? shown - first.score : undefined;
    const note = gain === undefined || gain === 0 ? "" : isBetter(shown, first.score, subject.direction)
      ? `${signed(gain, shown)} since the first script (${score(first.score)})` : `the first script had ${score(first.score)}`;
    const { submission } = state;
    return h("section", { class: "card score", "aria-label": "Best score" },
      h("p", { class: "label" }, state.state === "finished" ? "Validation score" : "Best validation score so far"),
      h("p", { class: "figure", id: "best-score" }, score(shown)),
      h("p", { class: "quiet" }, subject ? `${subject.metric} · ${isMinimized ? "lower" : "higher"} is better` : ""),
      note ? h("p", { class: "gain" }, note) : null,
      h("p", { class: submission ? "submission is-there" : "submission" }, submission
        ? ["Submission ready", h("span", { class: "quiet" }, ` · of a solution with ${score(submission.score)}${submission.rows ? ` · ${submission.rows.toLocaleString()} rows` : ""}`)]
        : h("span", { class: "quiet" }, state.state === "running" ? "No submission yet" : "There is no submission")));
  }

  budget() {
    const { state } = this.live;
    const { budget, forecast, glance } = state;
    const elapsed = this.live.elapsed();
    const isRunning = state.state === "running";
    const rows = [];
    if (budget) {
      const left = forecast ? Math.max(0, forecast.seconds_left - (elapsed - state.elapsed_seconds)) : undefined;
      const until = left === undefined ? "" : left < 30 ? "nearly done" : `about ${duration(Math.max(60, Math.round(left / 60) * 60))} to go`;
      rows.push(this.meter("Time", `${duration(elapsed)} of ${duration(budget.time_limit_seconds)}`, elapsed / budget.time_limit_seconds,
        isRunning ? (until || "no estimate yet") : "", left === undefined ? undefined : (elapsed + left) / budget.time_limit_seconds));
      const hasCost = glance.cost_usd !== null;
      const spent = hasCost ? money(budget.spent_usd) : "$0.00";
      rows.push(this.meter("Cost", budget.max_budget_usd === null ? `${spent}${hasCost ? "" : " · agents without a price"}` : `${spent} of ${money(budget.max_budget_usd)}`,
        budget.max_budget_usd ? budget.spent_usd / budget.max_budget_usd : undefined,
        isRunning && forecast?.cost_usd ? `about ${money(forecast.cost_usd)} in the end` : "",
        forecast?.cost_usd && budget.max_budget_usd ? forecast.cost_usd / budget.max_budget_usd : undefined));
    }
    const counts = [["agent calls", glance.agent_calls], ["scripts run", glance.scripts], ["solutions", state.solutions.filter((it) => it.kind !== "model").length], ["problems", state.trouble_count]];
    return h("section", { class: "card budget", "aria-label": "Budget" }, rows,
      h("ul", { class: "counts" }, counts.map(([name, count]) => h("li", {}, h("strong", {}, count.toLocaleString()), ` ${name}`))));
  }

  meter(name, text, share, note, expected) {
    const bar = share === undefined ? null : h("div", { class: "bar", role: "meter", "aria-label": name, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(Math.min(1, share) * 100)), "aria-valuetext": text },
      expected === undefined ? null : wide(h("span", { class: "expected" }), expected), wide(h("span", { class: "done" }), share));
    return h("div", { class: "meter" }, h("p", {}, h("strong", {}, name), ` ${text}`, note ? h("span", { class: "quiet note" }, note) : null), bar);
  }

  stepper() {
    const { state } = this.live;
    const elapsed = this.live.elapsed();
    return h("ol", { class: "phases", "aria-label": "Phases" }, PHASES.map(([id, name]) => {
      const phase = state.phases.find((it) => it.phase === id);
      const isActive = phase?.outcome === "open" && state.state === "running";
      const state_ = !phase ? "pending" : phase.outcome === "open" ? (isActive ? "active" : "cut") : phase.outcome;
      const took = phase && phase.outcome !== "skipped" ? duration((phase.ended_seconds ?? elapsed) - phase.began_seconds) : "";
      const words = { pending: "to come", active: "now", cut: "not finished", ended: "", skipped: "not needed", failed: "failed" }[state_];
      const best = phase?.best !== null && phase?.best !== undefined ? `best ${score(phase.best)}` : "";
      return h("li", { class: `phase ${state_}`, "aria-current": isActive ? "step" : undefined },
        h("span", { class: "dot", "aria-hidden": "true" }, phase ? MARKS[phase.outcome] : "○"),
        h("div", {}, h("strong", {}, name), h("p", { class: "quiet" }, [words, took, best].filter(Boolean).join(" · "))));
    }));
  }

  lanes() {
    const { state } = this.live;
    const elapsed = this.live.elapsed();
    const working = state.lanes.filter((it) => it.state === "working" || (it.state === "idle" && it.name.startsWith("path")));
    const rows = working.map((it) => {
      const steps = state.open_steps.filter((step) => step.lane === it.name);
      return h("li", { class: "lane" }, h("div", { class: "lane-name" }, h("strong", {}, lane(it.name)), it.best === null ? null : h("span", { class: "quiet" }, `best ${score(it.best)}`)),
        h("div", { class: "lane-steps" }, steps.length === 0 ? h("p", { class: "quiet" }, "waiting") : steps.map((step) => {
          const waits = step.script !== null && step.runs_since_seconds === null;
          const took = waits ? 0 : Math.max(0, elapsed - (step.runs_since_seconds ?? step.began_seconds));
          const text = waits ? "waits its turn" : step.limit_seconds === null ? duration(took) : `${duration(took)} of at most ${duration(step.limit_seconds)}`;
          return h("div", { class: "step" },
            h("p", {}, link(`${place(step.key)}: ${work(step.key)}`, "#", { "data-key": `step-${step.key}`, onclick: (event) => { event.preventDefault(); this.open({ step: step.key }); } }), h("span", { class: "quiet" }, text)),
            step.limit_seconds === null ? null : h("div", { class: "bar thin", "aria-hidden": "true" }, wide(h("span", { class: "done" }), took / step.limit_seconds)));
        })));
    });
    return card("Happening now", {}, rows.length ? h("ul", { class: "lanes" }, rows) : h("p", { class: "quiet" }, "Between two steps."));
  }

  ending() {
    const { state } = this.live;
    const parts = [];
    if (state.state === "stopped") {
      parts.push(card("This run has stopped before its end", { class: "card warn" },
        h("p", {}, "Nobody works on it now. What is finished is kept, and nothing of it will be done again:"),
        h("pre", { class: "command" }, `mle-star resume ${state.root}`)));
    }
    if (state.state === "failed") {
      parts.push(card("This run ended without a solution", { class: "card warn" }, h("p", {}, state.troubles.at(-1)?.message ?? "")));
    }
    if (state.lineage.length) {
      parts.push(card("Where the solution comes from", {}, h("ol", { class: "lineage" }, state.lineage.map((it) => h("li", {}, neat(it))))));
    }
    const path = state.lanes.filter((it) => it.name.startsWith("path"));
    if (path.length) {
      const words = { done: "done", working: "working", idle: "not finished", cut_short: "cut short by a limit", failed: "failed" };
      parts.push(card("Paths", {}, h("ul", { class: "lanes" }, path.map((it) => h("li", { class: "lane" },
        h("div", { class: "lane-name" }, h("strong", {}, lane(it.name))),
        h("p", {}, `best ${score(it.best)} · ${duration(it.ended_seconds - it.began_seconds)} · ${words[it.state]}`, it.failure ? h("span", { class: "quiet" }, ` · ${it.failure}`) : null))))));
    }
    return parts;
  }

  log() {
    const { events } = this.live.state;
    if (!events.length) return h("p", { class: "quiet" }, "Nothing yet.");
    const shown = events.slice(-14).reverse();
    return h("ol", { class: "log", reversed: true }, shown.map((it) => {
      const line = told(it.line.split("\n")[0]);
      const phase = /^=== (.*) ===$/.exec(line);
      return h("li", {}, h("time", { datetime: it.at }, clock(it.seconds)), phase ? h("strong", {}, phase[1]) : h("span", {}, line));
    }));
  }
}

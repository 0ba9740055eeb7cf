// What opens beside the page: a solution or a step. Escape closes it and gives the focus back.

import { ask, copier, facts, h, replace, tabs } from "./dom.js";
import { bytes, duration, KINDS, lane, money, outcome, place, score, work, worker } from "./format.js";

const aside = document.getElementById("panel");

export class Panel {
  constructor(closed) {
    this.closed = closed;
    this.target = undefined;
    this.back = undefined;
    this.tab = undefined;
    aside.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.closed();
      }
    });
  }

  get isOpen() {
    return !aside.hidden;
  }

  async show(run, target, open, isRunning) {
    this.isRunning = isRunning;
    const key = JSON.stringify([run, target]);
    if (this.key === key) return;
    if (!this.isOpen) this.back = document.activeElement;
    this.key = key;
    this.run = run;
    this.target = target;
    this.open = open;
    this.tab = this.call = undefined;
    aside.hidden = false;
    document.body.classList.add("has-panel");
    this.frame("Loading…", "", []);
    aside.focus();
    await this.load();
  }

  // Reads it again: what is open may be going on.
  async load() {
    const { key } = this;
    try {
      const { solution, step } = this.target;
      const data = solution !== undefined
        ? await ask("/api/solution", { run: this.run, id: solution, parent: this.target.parent })
        : await ask("/api/step", { run: this.run, key: step });
      if (this.key !== key) return;
      const text = JSON.stringify(data);
      if (text === this.shown && aside.querySelector(".panel-body")) return;
      this.shown = text;
      this.data = data;
      this.draw();
      if (data.what === "ask" && this.call === undefined) {
        this.call = null;
        this.call = (await ask("/api/prompt", { run: this.run, key: step })) ?? false;
        if (this.key === key) this.draw();
      }
    } catch (error) {
      if (this.key === key) this.frame("Not found", "", [["error", "Error", h("p", {}, error.message)]]);
    }
  }

  hide() {
    if (!this.isOpen) return;
    aside.hidden = true;
    aside.replaceChildren();
    document.body.classList.remove("has-panel");
    this.key = this.shown = this.target = undefined;
    const back = this.back;
    this.back = undefined;
    if (back?.isConnected) back.focus();
    else if (back?.dataset?.key) document.querySelector(`[data-key="${CSS.escape(back.dataset.key)}"]`)?.focus();
  }

  frame(title, subtitle, parts) {
    const current = parts.some(([id]) => id === this.tab) ? this.tab : parts[0]?.[0];
    const body = parts.find(([id]) => id === current)?.[2];
    replace(aside, h("div", { class: "panel-top" },
      h("div", {}, h("h2", { id: "panel-title" }, title), h("p", { class: "quiet" }, subtitle)),
      h("button", { type: "button", class: "close", "aria-label": "Close", title: "Close (Escape)", "data-key": "close", onclick: () => this.closed() }, "✕")),
    parts.length > 1 ? tabs("Parts", parts.map(([id, title]) => [id, title]), current, (id) => { this.tab = id; this.draw(); }) : null,
    h("div", { class: "panel-body", "data-scroll": `body-${current}`, tabindex: "-1" }, body ?? null));
  }

  draw() {
    if (this.target.solution !== undefined) this.drawSolution(this.data);
    else this.drawStep(this.data);
  }

  drawSolution({ solution: it, script, parents, compared, diff, steps, outcome: ended }) {
    const parentList = parents.length ? h("ul", { class: "plain" }, parents.map((parent) => h("li", {}, this.opener(parent.name, { solution: parent.id })))) : undefined;
    const about = [
      it.plan ? h("section", {}, h("h3", {}, "Plan"), h("p", { class: "prose" }, it.plan)) : null,
      it.error ? h("section", {}, h("h3", {}, "What was wrong"), h("p", { class: "prose error" }, it.error)) : null,
      facts([
        ["Score", it.score === null ? "" : score(it.score)], ["What became of it", outcome(it, this.isRunning)], ["Made from", parentList],
        ["Repairs", it.repairs || ""], ["Agents were paid", money(it.cost_usd)], ["Scripts ran for", it.script_seconds ? duration(it.script_seconds) : ""],
        ["Began", `${duration(it.began_seconds)} into the run`], ["Judged", it.ended_seconds === null ? "not yet" : `${duration(it.ended_seconds)} into the run`],
        ["Place", h("code", {}, it.id)], ["File", it.script ? h("code", {}, `solutions/${it.script}`) : ""],
      ]),
      h("section", {}, h("h3", {}, "Steps"), this.steps(steps)),
    ];
    const parts = [["about", "Summary", about]];
    if (parents.some((parent) => parent.has_script)) parts.push(["diff", "Changes", this.diff(parents, compared, diff, script)]);
    if (it.kind !== "model") parts.push(["script", "Script", this.code(script)]);
    if (ended) parts.push(["output", "Output", this.outcome(ended)]);
    this.frame(it.name, `${KINDS[it.kind]} · ${it.score === null ? "" : `${score(it.score)} · `}${outcome(it, this.isRunning)}`, parts);
  }

  drawStep(it) {
    const parts = [];
    const { call } = this;
    const took = it.ended_seconds === null ? "in progress" : duration(it.ended_seconds - it.began_seconds);
    if (it.what === "ask") {
      parts.push(["reply", "Reply", [
        it.problem ? h("p", { class: "error" }, it.problem) : null,
        it.reply ? this.text(it.reply) : h("p", { class: "quiet" }, it.ended_seconds === null ? "The agent has not answered yet." : "There is no reply."),
        it.structured ? h("section", {}, h("h3", {}, "Structured part"), this.text(JSON.stringify(it.structured, null, 2))) : null,
      ]]);
      parts.push(["prompt", "Prompt", call ? this.text(call.prompt) : h("p", { class: "quiet" }, call === false ? "The prompt cannot be made again from this record: another version of the program wrote it." : "Making the prompt again from the record…")]);
      if (call) parts.push(["system", "System prompt", this.text(call.system_prompt)]);
    } else {
      if (it.outcome) parts.push(["output", "Output", this.outcome(it.outcome)]);
      parts.push(["script", "Script", this.code(it.source)]);
    }
    parts.push(["about", "About", facts([
      ["Step", h("code", {}, it.key)], ["Lane", it.lane ? lane(it.lane) : ""], ["Took", took], ["Limit", it.limit_seconds === null ? "" : duration(it.limit_seconds)],
      ["Cost", money(it.cost_usd)], ["Tools", call ? call.tools.join(", ") || "none" : ""], ["Problem", it.problem],
    ])]);
    this.frame(`${place(it.key)}`, `${it.role ? `${it.role.replaceAll("_", " ")} ${work(it.key)}` : work(it.key)} · ${took}`, parts);
  }

  opener(name, target) {
    return h("button", { type: "button", class: "link", "data-key": `open-${JSON.stringify(target)}`, onclick: () => this.open(target) }, name);
  }

  steps(steps) {
    if (!steps.length) return h("p", { class: "quiet" }, "None.");
    return h("ul", { class: "plain steps" }, steps.map((it) => h("li", {}, h("span", {}, this.opener(worker(it.key), { step: it.key }), it.key.endsWith("/run") ? null : h("span", { class: "quiet" }, ` ${work(it.key)}`)),
      h("span", { class: it.problem ? "error" : "quiet" }, [it.ended_seconds === null ? "in progress" : duration(it.ended_seconds - it.began_seconds), it.cost_usd ? money(it.cost_usd) : "", it.problem].filter(Boolean).join(" · ")))));
  }

  diff(parents, compared, diff, script) {
    const choice = parents.filter((it) => it.has_script);
    const picker = choice.length > 1
      ? h("select", { "aria-label": "Compare with", "data-key": "parent", onchange: (event) => this.open({ ...this.target, parent: event.target.value }) },
        choice.map((it) => h("option", { value: it.id, selected: it.id === compared }, it.name)))
      : h("strong", {}, choice[0]?.name ?? "");
    const head = h("p", { class: "between" }, h("span", {}, "Compared with ", picker), diff ? h("span", { class: "sums" }, h("span", { class: "added" }, `+${diff.added}`), " ", h("span", { class: "removed" }, `−${diff.removed}`)) : null);
    if (!diff) return [head, h("p", { class: "quiet" }, script === null ? "There is no script yet." : "The script of the other is not there.")];
    if (!diff.hunks.length) return [head, h("p", { class: "quiet" }, "Nothing changed.")];
    const rows = diff.hunks.map((hunk, index) => [index ? h("tr", { class: "gap" }, h("td", { colspan: "4" }, "⋯")) : null,
      hunk.map((line) => h("tr", { class: { "+": "added", "-": "removed", " ": "same" }[line.sign] },
        h("td", { class: "number" }, line.old ?? ""), h("td", { class: "number" }, line.new ?? ""),
        h("td", { class: "sign" }, line.sign === "-" ? "−" : line.sign), h("td", { class: "code" }, line.text)))]);
    return [head, h("div", { class: "scroller" }, h("table", { class: "diff", "aria-label": "Changes" }, h("tbody", {}, rows))),
      diff.truncated ? h("p", { class: "quiet" }, "There is more, which is not shown.") : null];
  }

  code(script) {
    if (script === null || script === undefined) return h("p", { class: "quiet" }, "There is no script yet, or its file is not there.");
    const lines = script.replace(/\n$/, "").split("\n");
    return h("div", { class: "with-copy" }, copier(script), h("div", { class: "scroller" },
      h("table", { class: "listing", "aria-label": "Script" }, h("tbody", {}, lines.map((line, index) => h("tr", {}, h("td", { class: "number" }, index + 1), h("td", { class: "code" }, line)))))));
  }

  text(content) {
    return h("div", { class: "with-copy" }, copier(content), h("pre", { class: "prose" }, content));
  }

  outcome(it) {
    const ended = { exited: () => (it.ended.code === 0 ? "well" : `with exit code ${it.ended.code}`), signaled: () => `by signal ${it.ended.signal}`, timed_out: () => `at its limit of ${duration(it.ended.after_seconds)}`, exceeded: () => `because it used too much (${it.ended.resource})` };
    const stream = (name, captured) => (captured.text ? h("section", {}, h("h3", {}, name, captured.truncated ? h("span", { class: "quiet" }, ` · ${bytes(captured.total_bytes)} in all`) : null), this.text(captured.text)) : null);
    return [facts([["It ended", (ended[it.ended.kind] ?? (() => it.ended.kind))()], ["Ran for", duration(it.duration_seconds)], ["Memory", it.usage?.memory_bytes ? bytes(it.usage.memory_bytes) : ""], ["Sandbox", it.tier]]),
      stream("Printed", it.stdout), stream("Errors", it.stderr), it.stdout.text || it.stderr.text ? null : h("p", { class: "quiet" }, "It printed nothing.")];
  }
}

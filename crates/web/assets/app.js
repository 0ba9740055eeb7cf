// Which page is shown: the address after `#` says it, so that back, forward and bookmarks work.

import { h, link, replace, tabs } from "./dom.js";
import { score, STATES } from "./format.js";
import { List } from "./list.js";
import { Live } from "./live.js";
import { Panel } from "./panel.js";
import { Ablations, Agents, Problems, Setup } from "./sections.js";
import { Summary } from "./summary.js";
import { Tree } from "./tree.js";

const top_ = document.getElementById("top");
const main = document.getElementById("main");

const SECTIONS = [["overview", "Overview", Summary], ["solutions", "Solutions", Tree], ["ablations", "Ablations", Ablations],
  ["agents", "Agents", Agents], ["problems", "Problems", Problems], ["setup", "Setup", Setup]];

// The token has done its work: it should not stay in the address bar or the history.
if (location.search) history.replaceState(null, "", `${location.pathname}${location.hash}`);

let list, live, section, shown, hasList = false;
const panel = new Panel(() => go(live.name, shown));

function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [kind, name, part] = path.split("/");
  const target = Object.fromEntries(new URLSearchParams(query ?? ""));
  try {
    return { run: kind === "run" && name ? decodeURIComponent(name) : undefined, part: part || "overview", target };
  } catch {
    return { part: "overview", target: {} };
  }
}

function go(run, part, target) {
  const query = new URLSearchParams(target ?? {}).toString();
  const to = `#/run/${encodeURIComponent(run)}/${part}${query ? `?${query}` : ""}`;
  if (location.hash === to) route();
  else location.hash = to;
}

const open = (target) => go(live.name, shown, target);

function route() {
  const { run, part, target } = address();
  if (run === undefined) {
    leave();
    hasList = true;
    document.title = "Runs · MLE-STAR";
    replace(top_, h("div", { class: "bar-top" }, brand()));
    list ??= new List((name) => { hasList = false; history.replaceState(null, "", `#/run/${encodeURIComponent(name)}`); route(); });
    replace(main, list.element);
    return;
  }
  list?.close();
  list = undefined;
  if (live?.name !== run) {
    leave();
    live = new Live(run, changed);
    replace(main, h("p", { class: "quiet wait" }, "Loading…"));
  }
  const entry = SECTIONS.find(([id]) => id === part) ?? SECTIONS[0];
  if (shown !== entry[0] || !section) {
    shown = entry[0];
    section = new entry[2](live, open);
    if (live.state) replace(main, section.element);
  }
  if (live.state) changed();
  if (target.solution !== undefined || target.step !== undefined) panel.show(run, target, open, live.state?.state === "running");
  else panel.hide();
}

function leave() {
  live?.close();
  live = section = shown = undefined;
  panel.hide();
}

function brand() {
  return link([h("img", { src: "/assets/icon.svg", alt: "", width: "24", height: "24" }), "MLE-STAR"], "#/", { class: "brand" });
}

function changed() {
  if (!live) return;
  if (live.connection === "gone") {
    replace(top_, h("div", { class: "bar-top" }, brand()));
    replace(main, h("section", { class: "card" }, h("h2", {}, "There is no such run"), h("p", {}, link("All runs", "#/"))));
    return;
  }
  if (!live.state || !section) return;
  header();
  if (!section.element.isConnected) replace(main, section.element);
  section.update();
  if (panel.isOpen) panel.load();
}

function header() {
  const { state } = live;
  const condition = state.problem ? "damaged" : state.state;
  const title = state.glance.competition_id || state.name;
  document.title = `${condition === "running" ? "▶ " : condition === "finished" ? "✓ " : ""}${state.glance.best === null ? "" : `${score(state.selected?.score ?? state.glance.best)} · `}${title}`;
  const words = { live: condition === "running" ? "live" : "", waiting: "connecting", lost: "connection lost, trying again", ended: "the server has ended; this is the last it said" }[live.connection];
  const counts = { solutions: state.solutions.filter((it) => it.kind !== "model").length, ablations: state.ablations.length, problems: state.trouble_count };
  replace(top_,
    h("div", { class: "bar-top" }, brand(), h("span", { class: "quiet", "aria-hidden": "true" }, "/"),
      h("h1", {}, title), h("span", { class: `state ${condition}` }, STATES[condition]),
      h("span", { class: `connection ${live.connection} quiet`, role: "status" }, words),
      h("span", { class: "quiet run-id" }, state.name)),
    state.problem ? h("p", { class: "banner", role: "alert" }, `The journal cannot be read further: ${state.problem}. What came before is shown.`) : null,
    tabs("Parts of the run", SECTIONS.map(([id, name]) => [id, name, counts[id] ? String(counts[id]) : ""]), shown, (id) => go(live.name, id)));
}

window.addEventListener("hashchange", route);
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && panel.isOpen) go(live.name, shown); });
setInterval(() => { if (live?.state && section?.tick && !document.hidden) section.tick(); }, 1000);
route();

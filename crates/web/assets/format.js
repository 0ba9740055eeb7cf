// Numbers and names as people read them.

export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 && minutes < 10 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${hours} h`;
}

// A time on the clock of a run.
export function clock(seconds) {
  const whole = Math.floor(seconds), two = (it) => String(it).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

// A sentence without the digits of its numbers that nobody reads.
export function neat(text) {
  return text.replace(/\d+\.\d{7,}(?!\d|e)/g, (it) => score(Number(it)));
}

// A line of a run, with the place that it begins with in words.
export function told(line) {
  const found = /^(warning: )?((?:phase[123]|finalization)(?:\/[\w-]+)*):? (.+)$/.exec(line);
  return neat(found ? `${found[1] ?? ""}${place(found[2])}: ${found[3]}` : line);
}

export function money(dollars) {
  if (dollars === undefined || dollars === null) return "";
  return dollars !== 0 && Math.abs(dollars) < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`;
}

// How many digits a score of this size has after its point; none for one that is written with a power of ten.
function decimals(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-5 && size > 0)) return undefined;
  return size >= 1000 ? 1 : size >= 10 ? 3 : 5;
}

export function score(value) {
  if (value === undefined || value === null) return "–";
  if (value === 0) return "0";
  const digits = decimals(value);
  return digits === undefined ? value.toExponential(3) : value.toFixed(digits);
}

// A difference between scores, to as many digits as the score `of` which it is a part.
export function signed(value, of) {
  const digits = decimals(of);
  const text = digits === undefined ? score(Math.abs(value)) : Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? "±0" : `${value > 0 ? "+" : "−"}${text}`;
}

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = count, unit = 0;
  while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function moment(timestamp) {
  if (!timestamp) return "";
  const date = new Date(timestamp);
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export const PHASES = [
  ["phase1", "Initial solution", "Phase 1"],
  ["phase2", "Refinement", "Phase 2"],
  ["phase3", "Ensemble", "Phase 3"],
  ["finalization", "Finalization", "End"],
];

export const STATES = {
  running: "Running", finished: "Finished", stopped: "Stopped", failed: "Failed", empty: "Empty", damaged: "Damaged",
};

export const OUTCOMES = {
  retrieved: "retrieved", open: "in progress", scored: "scored", accepted: "kept", rejected: "not kept",
  failed: "failed", submitted: "submitted",
};

// What became of a solution, in a word.
export function outcome(solution, isRunning) {
  return solution.outcome === "open" && !isRunning ? "not finished" : OUTCOMES[solution.outcome];
}

export const KINDS = {
  model: "Retrieved model", candidate: "Candidate", merged: "Merge", checked: "After the checks",
  refined: "Refinement", ensemble: "Ensemble", early_submission: "Early submission", final: "Final solution",
};

const WORK = {
  retriever: "searches for models", init: "writes a first script", merger: "merges two scripts", run: "runs a script",
  debugger: "mends a script", ablation: "writes an ablation study", summarize: "sums up the study",
  extractor: "chooses what to refine", planner: "plans the next attempt", coder: "rewrites the block",
  ens_planner: "plans an ensemble", ensembler: "writes the ensemble", leakage: "looks for leakage",
  data: "checks the use of the data", test: "prepares the submission", subsampling_extract: "looks for sampling", totals: "adds up the run",
};

const PARTS = [
  [/^candidate-(\d+)$/, (n) => `candidate ${n}`], [/^merge-(\d+)$/, (n) => `merge ${n}`],
  [/^path-(\d+)$/, (n) => `path ${n}`], [/^outer-(\d+)$/, (n) => `outer ${n}`],
  [/^inner-(\d+)$/, (n) => `inner ${n}`], [/^round-(\d+)$/, (n) => `round ${n}`],
  [/^study$/, () => "study"], [/^checks$/, () => "checks"], [/^early_submission$/, () => "early submission"],
  [/^finalization$/, () => "finalization"], [/^attempt-(\d+)$/, (n) => (n === "0" ? "" : `repair ${n}`)],
];

// Where a key stands, in words: `phase2/path-0/outer-1/inner-2/coder` is path 0, outer 1, inner 2.
export function place(key) {
  const words = key.split("/").map((part) => {
    for (const [pattern, name] of PARTS) {
      const found = pattern.exec(part);
      if (found) return name(found[1]);
    }
    return "";
  });
  return words.filter(Boolean).join(", ") || PHASES.find(([id]) => key.startsWith(id))?.[1] || key;
}

export function work(key) {
  const last = key.split("/").pop();
  return WORK[last] ?? last.replaceAll("_", " ");
}

// Who works in a step: a role, or a script that was run, perhaps after repairs.
export function worker(key) {
  const last = key.split("/").pop();
  const repair = /\/attempt-([1-9]\d*)\//.exec(key);
  return `${last === "run" ? "script" : last.replaceAll("_", " ")}${repair ? `, repair ${repair[1]}` : ""}`;
}

export function lane(name) {
  return name.replace("-", " ").replace(/^./, (it) => it.toUpperCase());
}

export function isBetter(a, b, direction) {
  return direction === "minimize" ? a < b : a > b;
}

// The state of a run, as the server tells it: all of it first, then what has changed.

export class Live {
  constructor(name, changed) {
    this.name = name;
    this.changed = changed;
    this.state = undefined;
    // waiting, live, lost, ended, gone
    this.connection = "waiting";
    this.source = new EventSource(`/api/live?run=${encodeURIComponent(name)}`);
    this.source.onmessage = (event) => this.take(JSON.parse(event.data));
    this.source.onerror = () => this.is("lost");
    this.source.onopen = () => this.is("live");
    this.source.addEventListener("end", () => this.close("ended"));
    this.source.addEventListener("gone", () => this.close("gone"));
  }

  close(why) {
    this.source.close();
    if (why) this.is(why);
  }

  is(connection) {
    if (this.connection === connection) return;
    this.connection = connection;
    this.changed();
  }

  take(message) {
    const before = message.whole || !this.state
      ? { solutions: [], ablations: [], troubles: [], subject: undefined } : this.state;
    const merged = { ...before, ...message };
    for (const list of ["solutions", "ablations", "troubles"]) {
      merged[list] = message.whole ? [] : before[list];
      for (const [index, item] of message[list]) merged[list][index] = item;
    }
    merged.subject = message.subject ?? before.subject;
    merged.byId = new Map(merged.solutions.map((it) => [it.id, it]));
    merged.received = performance.now();
    this.state = merged;
    this.connection = "live";
    this.changed();
  }

  // Running time as of now.
  elapsed() {
    const { state } = this;
    const since = state.state === "running" && this.connection === "live" ? (performance.now() - state.received) / 1000 : 0;
    return state.elapsed_seconds + since;
  }
}

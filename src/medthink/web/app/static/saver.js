// Saving marks: every change is kept in the browser first, then sent in order; "Saved" means that the server has it.
// A change carries the version it was made on. A stale one gets 409 and the reader chooses; nothing is overwritten silently.

export class Saver extends EventTarget {
  /** send({item, version, cells, seconds, key}) → {status, version?, cells?, saved_at?, problem?}; throws when offline */
  constructor(place, send, versions) {
    super();
    this.place = place;
    this.send = send;
    this.versions = versions;
    this.refusal = "";
    try { this.queue = JSON.parse(localStorage.getItem(place)) ?? []; } catch { this.queue = []; }
    addEventListener("online", () => this.flush());
    addEventListener("beforeunload", (event) => { if (this.queue.length && !this.kept) event.preventDefault(); });
    setInterval(() => { if (this.next()) this.flush(); }, 5000);
  }

  /** The cells of changes that wait to be sent, by item: what the reader last saw. */
  get waiting() { return Object.fromEntries(this.queue.map(({item, cells}) => [item, cells])); }

  save(item, cells, seconds) {
    // The newest wins as long as nothing was sent: the server may have kept what was, even where its answer was lost.
    const last = this.queue.findLast((one) => one.item === item && !one.sent);
    if (last) Object.assign(last, {cells, seconds: last.seconds + seconds, refused: ""});
    else this.queue.push({item, cells, seconds, key: crypto.randomUUID()});
    this.keep();
    return this.flush();
  }

  keep() {
    try { localStorage.setItem(this.place, JSON.stringify(this.queue)); this.kept = true; } catch { this.kept = false; }
  }

  /** Send what waits; a second call waits for the first. */
  flush() { return this.running ??= this.run().finally(() => { this.running = null; }); }

  /** The first change that waits; one that was refused waits until it is changed, and holds up no other. */
  next() { return this.queue.find((one) => !one.refused); }

  drop(one) { this.queue.splice(this.queue.indexOf(one), 1); this.keep(); }

  /** The server does not have a refused change: the next one of its item takes its place. */
  refuse(one, problem) {
    const later = this.queue.find((other) => other.item === one.item && other !== one);
    if (later) this.drop(one);
    else { Object.assign(one, {refused: problem, sent: false}); this.keep(); }
  }

  async run() {
    this.tell("saving");
    try {
      for (let one = this.next(); one; one = this.next()) {
        if (!one.sent) { one.sent = true; this.keep(); }
        const answer = await this.send({item: one.item, cells: one.cells, seconds: one.seconds, key: one.key, version: this.versions[one.item] ?? 0});
        if (answer.status === 422) { this.refuse(one, answer.problem); continue; }
        if (answer.status === 409) {
          const choice = await this.settle(one, answer);   // "mine": sent again on the new version; "theirs": dropped
          this.versions[one.item] = answer.version;
          if (choice === "mine") { one.key = crypto.randomUUID(); this.keep(); continue; }
          this.dispatchEvent(new CustomEvent("taken", {detail: {item: one.item, cells: answer.cells}}));
        } else this.versions[one.item] = answer.version;
        this.drop(one);
      }
      this.refusal = this.queue[0]?.refused ?? "";
      this.tell(this.queue.length ? "waiting" : "saved");
    } catch {
      this.tell("waiting");
    }
  }

  settle() { return Promise.resolve("theirs"); }   // the page replaces this by a dialog

  tell(state) { this.dispatchEvent(new CustomEvent("state", {detail: {state, waiting: Object.keys(this.waiting).length, refusal: this.refusal}})); }
}

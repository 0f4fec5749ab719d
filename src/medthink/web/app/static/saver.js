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
    setInterval(() => { if (this.queue.length) this.flush(); }, 5000);
  }

  /** The cells of changes that wait to be sent, by item: what the reader last saw. */
  get waiting() { return Object.fromEntries(this.queue.map(({item, cells}) => [item, cells])); }

  save(item, cells, seconds) {
    const last = this.queue.findLast((one) => one.item === item && !one.going);
    if (last) Object.assign(last, {cells, seconds: last.seconds + seconds});   // the newest wins inside the browser
    else this.queue.push({item, cells, seconds, key: crypto.randomUUID()});
    this.keep();
    return this.flush();
  }

  keep() {
    try { localStorage.setItem(this.place, JSON.stringify(this.queue.map(({going, ...one}) => one))); this.kept = true; } catch { this.kept = false; }
  }

  /** Send what waits; a second call waits for the first. */
  flush() { return this.running ??= this.run().finally(() => { this.running = null; }); }

  async run() {
    this.tell("saving");
    try {
      while (this.queue.length) {
        const one = this.queue[0];
        one.going = true;
        const answer = await this.send({item: one.item, cells: one.cells, seconds: one.seconds, key: one.key, version: this.versions[one.item] ?? 0});
        if (answer.status === 422) { this.refusal = answer.problem; throw new Error(answer.problem); }
        if (answer.status === 409) {
          const choice = await this.settle(one, answer);   // "mine": sent again on the new version; "theirs": dropped
          this.versions[one.item] = answer.version;
          if (choice === "mine") { one.going = false; one.key = crypto.randomUUID(); continue; }
          this.dispatchEvent(new CustomEvent("taken", {detail: {item: one.item, cells: answer.cells}}));
        } else this.versions[one.item] = answer.version;
        this.queue.shift();
        this.keep();
      }
      this.refusal = "";
      this.tell("saved");
    } catch {
      for (const one of this.queue) one.going = false;
      this.tell("waiting");
    }
  }

  settle() { return Promise.resolve("theirs"); }   // the page replaces this by a dialog

  tell(state) { this.dispatchEvent(new CustomEvent("state", {detail: {state, waiting: Object.keys(this.waiting).length, refusal: this.refusal}})); }
}

/** Entries that wait to be sent: bounded, and the least important go first. */

export const levels = ["debug", "info", "warn", "error", "fatal"];
const names = { trace: "debug", verbose: "debug", silly: "debug", warning: "warn", err: "error", severe: "error", critical: "fatal", crit: "fatal", alert: "fatal", emerg: "fatal" };

/** The level that loggers give a name, in any case. */
export function levelNamed(name) {
  if (levels.includes(name)) return name;
  const lower = String(name).toLowerCase();
  return levels.includes(lower) ? lower : Object.hasOwn(names, lower) ? names[lower] : "info";
}

const maxEntries = 1000; // of a request, by the interface
const entryCost = 200; // bytes of memory beside an entry's text

export class Queue {
  #byLevel = levels.map(() => []);
  #heads = levels.map(() => 0); // what is taken of each, so that taking is cheap
  #order = 0;
  #bounds;
  size = 0;
  bytes = 0;

  constructor(bounds) {
    this.#bounds = bounds;
  }

  /** Adds an entry and returns how many, this one included, were dropped for it. */
  add(level, text) {
    const rank = Math.max(levels.indexOf(level), 0);
    const cost = text.length + entryCost;
    let dropped = 0;
    while (this.size >= this.#bounds.entries || this.bytes + cost > this.#bounds.bytes) {
      const lowest = this.#byLevel.findIndex((of, i) => of.length > this.#heads[i]);
      if (lowest < 0 || lowest >= rank) return dropped + 1;
      this.#shift(lowest);
      dropped++;
    }
    this.#byLevel[rank].push({ order: this.#order++, text });
    this.size++;
    this.bytes += cost;
    return dropped;
  }

  /** The place of the first entry that waits, of all that ever came; end if none does. */
  get begin() {
    return Math.min(this.end, ...this.#byLevel.map((of, i) => of[this.#heads[i]]?.order ?? Infinity));
  }

  /** The place of the next entry. */
  get end() {
    return this.#order;
  }

  /** Whether a request is full. */
  full(maxBytes) {
    return this.size >= maxEntries || this.bytes >= maxBytes;
  }

  /** Takes what fits into one request, in the order of arrival. */
  take(maxBytes) {
    const batch = [];
    let bytes = 0;
    while (batch.length < maxEntries) {
      let first = -1;
      for (let i = 0; i < levels.length; i++) {
        const head = this.#byLevel[i][this.#heads[i]];
        if (head && (first < 0 || head.order < this.#byLevel[first][this.#heads[first]].order)) first = i;
      }
      if (first < 0) break;
      const text = this.#byLevel[first][this.#heads[first]].text;
      if (batch.length > 0 && bytes + text.length > maxBytes) break;
      this.#shift(first);
      bytes += text.length;
      batch.push(text);
    }
    return batch;
  }

  #shift(level) {
    const of = this.#byLevel[level];
    this.bytes -= of[this.#heads[level]].text.length + entryCost;
    of[this.#heads[level]++] = undefined;
    this.size--;
    if (this.#heads[level] > 1024 && this.#heads[level] * 2 > of.length) {
      of.splice(0, this.#heads[level]);
      this.#heads[level] = 0;
    }
  }
}

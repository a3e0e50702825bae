/** What clients in Node and in browsers share: the queue, its delivery and what became of it. */

import { levelNamed, Queue } from "./queue.js";

const maxMessage = 10 * 1024;
const maxEntry = 512 * 1024;
const maxBatch = 512 * 1024;
const maxLeaving = 16_000; // characters, of three bytes at most: browsers send 64 KiB for pages that have ended
const encoder = new TextEncoder();
export const open = new Set(); // clients

export class Client {
  #options;
  #post; // (options, body, idempotencyKey, leaving) → answer; it never fails
  #queue;
  #timer;
  #sending = null; // the promise of what is being sent
  #first = Infinity; // the place of the first entry of that
  #sent = () => {}; // called after each request, if somebody waits for that
  #leaving = null; // that of what is sent as the page may end
  #closed = false;
  #refused = ""; // the code with which the server refused the key
  #ended = new AbortController();
  #stats = { accepted: 0, dropped: {} };
  #unreported = {};
  #telling = false; // onDrop is being called

  constructor(post, options) {
    const given = {
      interval: 1000, maxEntries: 50_000, maxBytes: 32 << 20, deadline: 300_000, ...options,
    };
    if (!given.baseURL) throw new TypeError("baseURL is not given: pass it, or in Node set WEIR_BASE_URL");
    if (!given.apiKey) throw new TypeError("apiKey is not given: pass it, or in Node set WEIR_API_KEY");
    if (!String(given.baseURL).startsWith("https://")) {
      throw new TypeError(`baseURL is "${given.baseURL}"; it must begin with https://, such as https://logs.example.com/v1`);
    }
    if (!String(given.apiKey).startsWith("weir_")) throw new TypeError("apiKey must begin with weir_; create one under API Keys");
    this.#post = post;
    this.#options = given;
    this.#queue = new Queue({ entries: given.maxEntries, bytes: given.maxBytes });
    open.add(this);
  }

  debug(message, metadata) { this.log("debug", message, metadata); }
  info(message, metadata) { this.log("info", message, metadata); }
  warn(message, metadata) { this.log("warn", message, metadata); }
  error(message, metadata) { this.log("error", message, metadata); }
  fatal(message, metadata) { this.log("fatal", message, metadata); }

  /** Queues an entry. An Error among the metadata, as error or err, becomes the error of the entry. */
  log(level, message, metadata, time = new Date()) {
    try {
      const entry = { timestamp: new Date(time).toISOString(), level: levelNamed(level), message: shortened(String(message)) };
      if (metadata instanceof Error) metadata = { error: metadata };
      const { error, err, ...others } = metadata ?? {};
      const failure = [error, err].find((one) => one instanceof Error);
      if (failure) entry.error = errorOf(failure);
      if (error !== undefined && !(error instanceof Error)) others.error = error;
      if (err !== undefined && !(err instanceof Error)) others.err = err;
      if (Object.keys(others).length > 0) entry.metadata = others;
      this.send(entry);
    } catch {
      this.#drop("not_json", 1); // a logger must not harm its program
    }
  }

  /** Queues an entry that has all its members. */
  send(entry) {
    if (this.#closed || this.#refused) return this.#drop(this.#closed ? "closed" : this.#refused, 1);
    let text;
    try {
      if (this.#options.environment && entry.environment === undefined) entry = { ...entry, environment: this.#options.environment };
      const changed = this.#options.redact ? this.#options.redact(entry) : entry;
      if (!changed) return;
      text = encodedWithout(changed);
      entry = changed;
    } catch {
      return this.#drop("not_json", 1);
    }
    if (text.length > maxEntry) return this.#drop("entry_too_large", 1);
    this.#drop("queue_full", this.#queue.add(entry.level, text));
    if (this.#queue.full(maxBatch)) this.#begin();
    else this.#timer ??= unref(setTimeout(() => this.#begin(), this.#options.interval));
  }

  /** Resolves once all that was queued before was sent or dropped; false: not in so many milliseconds. */
  async flush(timeout = 10_000) {
    let timer; // keeps the program from its end, as that of a retry does not
    const over = new Promise((resolve) => { timer = setTimeout(resolve, timeout, false); });
    const behind = this.#queue.end; // what comes later is not waited for, since others may log all the time
    const all = (async () => {
      while (this.#leaving || Math.min(this.#queue.begin, this.#first) < behind) {
        if (this.#leaving) await this.#leaving;
        else await Promise.race([this.#nextSent(), this.#begin()]);
      }
      return true;
    })();
    return Promise.race([all, over]).finally(() => clearTimeout(timer));
  }

  /** Sends what waits at once, as a page does before it may end; not while an earlier call does, so that what waits stays bounded. */
  leave() {
    if (this.#leaving) return;
    const batches = [];
    for (let batch; (batch = this.#queue.take(maxLeaving)).length > 0;) batches.push(this.#deliverOrDrop(batch, true));
    this.#leaving = Promise.all(batches).finally(() => { this.#leaving = null; });
  }

  /** Flushes, and ends: what comes later, or is left then, is dropped. */
  async close(timeout = 10_000) {
    if (this.#closed) return true;
    this.#closed = true;
    const done = await this.flush(timeout);
    this.#ended.abort();
    clearTimeout(this.#timer);
    this.#drop("closed", this.#queue.size);
    open.delete(this);
    return done;
  }

  /** What became of entries so far. */
  stats() {
    return { accepted: this.#stats.accepted, dropped: { ...this.#stats.dropped } };
  }

  #begin() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#run().finally(() => { this.#sending = null; });
    return this.#sending;
  }

  async #run() {
    while (this.#queue.size > 0) {
      this.#first = this.#queue.begin;
      await this.#deliverOrDrop(this.#queue.take(maxBatch));
      this.#first = Infinity;
      this.#sent();
    }
  }

  /** Resolves after the next request. */
  #nextSent() {
    const before = this.#sent;
    return new Promise((resolve) => {
      this.#sent = () => { this.#sent = () => {}; before(); resolve(); };
    });
  }

  async #deliverOrDrop(batch, leaving) {
    try {
      await this.#deliver(batch, leaving);
    } catch (failure) {
      this.#drop("failed", batch.length, { body: { detail: String(failure) } });
    }
  }

  async #deliver(batch, leaving = false) {
    if (this.#refused) return this.#drop(this.#refused, batch.length);
    const reported = batch.length < 1000 ? this.#takeUnreported() : {};
    const reports = Object.keys(reported).length > 0 ? [reportOf(reported)] : [];
    const body = `{"logs":[${[...batch, ...reports].join(",")}]}`;
    const key = randomKey();
    const until = Date.now() + this.#options.deadline;
    let answer;
    for (let attempt = 0; ; attempt++) {
      answer = await this.#post(this.#options, body, key, leaving);
      if (answer.status !== 0 && answer.status !== 429 && answer.status < 500) break;
      const wait = waitOf(answer, attempt);
      if (Date.now() + wait > until || await this.#sleep(wait)) break;
    }
    if (answer.status !== 200) this.#keepUnreported(reported);
    const odd = answer.body.code === "invalid_json" && batch.length > 1; // one entry, such as one that nests too deep
    if (!odd) this.#settle(answer, batch.length);
    if (answer.remaining === 0 && answer.limit > 0) await this.#sleep(60_000 / answer.limit);
    if (!odd) return;
    await this.#deliver(batch.slice(0, batch.length >> 1));
    await this.#deliver(batch.slice(batch.length >> 1));
  }

  #settle(answer, entries) {
    if (answer.status === 200) {
      const rejected = Math.min(answer.body.rejected ?? 0, entries);
      this.#stats.accepted += entries - rejected;
      return this.#drop("rejected", rejected, answer);
    }
    const code = answer.body.code ?? (answer.status === 0 ? "no_answer" : String(answer.status));
    if (answer.status === 401 || answer.status === 403) this.#refused = code;
    this.#drop(code, entries, answer);
  }

  /** Waits; true: the client was closed meanwhile. */
  #sleep(milliseconds) {
    const { signal } = this.#ended;
    if (signal.aborted) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = unref(setTimeout(resolve, milliseconds, false));
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(true); }, { once: true });
    });
  }

  #takeUnreported() {
    const taken = this.#unreported;
    this.#unreported = {};
    return taken;
  }

  #keepUnreported(reasons) {
    for (const [reason, entries] of Object.entries(reasons)) this.#unreported[reason] = (this.#unreported[reason] ?? 0) + entries;
  }

  #drop(reason, entries, answer) {
    if (entries <= 0) return;
    const first = !this.#stats.dropped[reason];
    this.#stats.dropped[reason] = (this.#stats.dropped[reason] ?? 0) + entries;
    this.#unreported[reason] = (this.#unreported[reason] ?? 0) + entries;
    if (first) {
      const fault = answer?.body.errors?.[0];
      const why = fault ? `: ${fault.pointer}: ${fault.detail} ${fault.fix}` : answer?.body.detail ? `: ${answer.body.detail}` : "";
      console.error(`weir: ${reason}, ${entries} log entries are dropped${why}`);
    }
    if (this.#telling) return; // onDrop logs, and that is dropped as well
    this.#telling = true;
    try {
      this.#options.onDrop?.(reason, entries);
    } catch { /* a logger must not harm its program */ }
    this.#telling = false;
  }
}

/** An error with its causes, as the entry's error has it. */
export function errorOf(failure) {
  const lines = [];
  const seen = new Set();
  for (let one = failure; one instanceof Error && !seen.has(one); one = one.cause) {
    seen.add(one);
    const stack = String(one.stack ?? `${one.name}: ${one.message}`).split("\n");
    lines.push(...(lines.length > 0 ? [`Caused by: ${stack[0]}`, ...stack.slice(1)] : stack));
  }
  return { type: failure.name, message: failure.message, stack_trace: lines };
}

/** encoded, without metadata that can't be, such as a ring of objects. */
function encodedWithout(entry) {
  try {
    return encoded(entry);
  } catch (failure) {
    return encoded({ ...entry, metadata: { not_json: String(failure.message).split("\n")[0] } });
  }
}

/** JSON as Weir reads it: without cycles, bigints as text, and without lone surrogates. */
function encoded(entry) {
  const text = JSON.stringify(entry, (_, value) => (typeof value === "bigint" ? String(value) : value));
  return text.includes("\\ud") ? JSON.stringify(wellFormed(JSON.parse(text))) : text;
}

function wellFormed(value) {
  if (typeof value === "string") return value.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, of]) => [wellFormed(name), wellFormed(of)]));
  return value;
}

/** A message within the limit of the interface. */
export function shortened(message) {
  if (message.length * 3 <= maxMessage) return message;
  const bytes = encoder.encode(message);
  if (bytes.length <= maxMessage) return message;
  return `${new TextDecoder().decode(bytes.subarray(0, maxMessage - 6)).replace(/\ufffd+$/, "")}…`;
}

/** An idempotency key. Pages without TLS have no randomUUID. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** An entry that says what was dropped. */
function reportOf(reasons) {
  const all = Object.values(reasons).reduce((sum, n) => sum + n, 0);
  const said = Object.entries(reasons).map(([reason, n]) => `${n} ${reason}`).join(", ");
  return JSON.stringify({
    timestamp: new Date().toISOString(), level: "warn", message: `dropped ${all} log entries: ${said}`, metadata: { dropped_by_client: reasons },
  });
}

/** Milliseconds before the next attempt: with full jitter, never before Retry-After. */
export function waitOf(answer, attempt) {
  const backoff = Math.random() * Math.min(60_000, 500 * 2 ** attempt);
  return Math.max(backoff, (answer.retryAfter ?? 0) * 1000, answer.body.code === "quota_exceeded" ? 5000 : 0);
}

/** What a client reads of an answer. */
export function answerOf(status, header, text) {
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch { /* of something between us and Weir */ }
  const number = (name) => (header(name) === undefined || header(name) === null ? undefined : Number(header(name)));
  return { status, body, retryAfter: number("retry-after"), remaining: number("x-ratelimit-remaining"), limit: number("x-ratelimit-limit") };
}

/** Lets a program of Node end while a timer waits. */
function unref(timer) {
  timer.unref?.();
  return timer;
}

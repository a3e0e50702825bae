import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { Client as Core } from "./client.js";
import { Client, errorOf, shortened, waitOf } from "./index.js";
import pino from "./pino.js";
import { Queue } from "./queue.js";

const settings = { baseURL: "https://127.0.0.1:1/v1", apiKey: "weir_x", interval: 1e9 };

/** Collects what would be sent. */
function collecting(options = {}) {
  const sent = [];
  const client = new Client({ ...settings, redact: (entry) => { sent.push(entry); }, ...options });
  return { client, sent };
}

test("the queue drops the lowest level first", () => {
  const queue = new Queue({ entries: 3, bytes: 1 << 20 });
  for (const level of ["info", "debug", "error"]) assert.equal(queue.add(level, level), 0);
  assert.equal(queue.add("warn", "warn"), 1);
  assert.equal(queue.add("info", "late"), 1);
  assert.deepEqual(queue.take(1 << 20), ["info", "error", "warn"]);
  assert.equal(queue.bytes, 0);
});

test("a request has 1,000 entries at most, and the queue's memory is bounded", () => {
  const queue = new Queue({ entries: 5000, bytes: 1000 * 210 });
  let dropped = 0;
  for (let i = 0; i < 3000; i++) dropped += queue.add("info", "0123456789");
  assert.equal(dropped, 2000);
  assert.equal(queue.take(1 << 20).length, 1000);
  for (let i = 0; i < 3000; i++) queue.add("info", "x"), queue.take(1 << 20);
  assert.equal(queue.size, 0);
});

test("flush ends though others log", async () => {
  let client;
  const post = async () => {
    client.info("later");
    await new Promise((resolve) => { setTimeout(resolve, 5); });
    return { status: 200, body: {} };
  };
  client = new Core(post, settings);
  client.info("before");
  assert.deepEqual(await Promise.all([client.flush(5000), client.flush(5000)]), [true, true]);
  await client.close(50);
});

test("errors bring their causes", () => {
  const failure = errorOf(new TypeError("no cart", { cause: new RangeError("7") }));
  assert.equal(failure.type, "TypeError");
  assert.match(failure.stack_trace[0], /TypeError: no cart/);
  assert.ok(failure.stack_trace.some((line) => line.startsWith("Caused by: RangeError: 7")));
  const ring = new Error("ring");
  ring.cause = ring;
  assert.ok(errorOf(ring).stack_trace.length > 0);
});

test("an entry has its error and metadata", () => {
  const { client, sent } = collecting({ environment: "prod" });
  client.log("warn", "m", { a: 1, err: new Error("x"), error: "text" }, 0);
  client.error("m", new Error("y"));
  assert.equal(sent[0].timestamp, "1970-01-01T00:00:00.000Z");
  assert.deepEqual(sent[0].metadata, { a: 1, error: "text" });
  assert.equal(sent[0].environment, "prod");
  assert.equal(sent[1].error.message, "y");
});

test("levels have their common names, in any case", () => {
  const { client, sent } = collecting();
  for (const name of ["WARNING", "Error", "critical", "trace", "loud", undefined, "toString"]) client.log(name, "m");
  assert.deepEqual(sent.map(({ level }) => level), ["warn", "error", "fatal", "debug", "info", "info", "info"]);
});

test("what onDrop logs does not call it again", () => {
  let told = 0;
  const client = new Client({ ...settings, maxEntries: 1, onDrop: () => { told++; client.info("dropped"); } });
  client.error("m");
  client.info("m");
  assert.equal(told, 1);
  assert.deepEqual(client.stats().dropped, { queue_full: 2 });
  client.info("m");
  assert.equal(told, 2);
});

test("what can't be sent harms nobody", () => {
  const client = new Client(settings);
  client.info("m", { get evil() { throw new Error("evil"); } });
  client.info({ toString() { throw new Error("evil"); } });
  assert.deepEqual(client.stats().dropped, { not_json: 2 });
});

test("a ring of objects costs the metadata alone", () => {
  const client = new Client(settings);
  const ring = {};
  ring.ring = ring;
  client.info("m", ring);
  assert.deepEqual(client.stats().dropped, {});
});

test("messages are within the limit", () => {
  assert.equal(shortened("é".repeat(5120)), "é".repeat(5120));
  assert.ok(Buffer.byteLength(shortened("é".repeat(5121))) <= 10240);
});

test("many clients listen once", async () => {
  const before = process.listenerCount("beforeExit");
  for (let i = 0; i < 3; i++) await new Client(settings).close();
  assert.equal(process.listenerCount("beforeExit"), before);
});

test("settings are checked", () => {
  for (const [given, want] of [[{ baseURL: "http://x" }, /https:/], [{ apiKey: "k" }, /weir_/], [{ baseURL: "" }, /WEIR_BASE_URL/]]) {
    assert.throws(() => new Client({ ...settings, ...given }), want);
  }
  assert.ok(!JSON.stringify(new Client(settings)).includes("weir_x"));
});

test("a program ends while a client waits to send again", () => {
  const program = `import { Client } from ${JSON.stringify(new URL("index.js", import.meta.url).href)};
    const client = new Client({ baseURL: "https://127.0.0.1:1/v1", apiKey: "weir_x", interval: 0 });
    client.info("m");
    if (await client.flush(500)) process.exit(3);
    process.on("beforeExit", () => process.exit(7));`;
  assert.equal(spawnSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 10_000 }).status, 7);
});

test("it waits as it is told", () => {
  assert.ok(waitOf({ retryAfter: 7, body: {} }, 0) >= 7000);
  assert.ok(waitOf({ body: { code: "quota_exceeded" } }, 0) >= 5000);
});

test("pino's records become entries", () => {
  const { client, sent } = collecting();
  const to = pino({ client });
  to.write('{"level":50,"time":0,"msg":"m","cart":7,"err":{"type":"TypeError","message":"x","stack":"TypeError: x\\n    at f","code":"E"}}\n');
  to.write("no JSON\n");
  assert.deepEqual(sent[0], {
    timestamp: "1970-01-01T00:00:00.000Z", level: "error", message: "m", metadata: { cart: 7 },
    error: { type: "TypeError", message: "x", stack_trace: ["TypeError: x", "    at f"], context: { code: "E" } },
  });
  assert.equal(sent[1].message, "no JSON");
});

test("pino's settings change nothing of that", () => {
  const { client, sent } = collecting({ environment: "prod" });
  const to = pino({ client });
  to.write('{"level":"error","time":"no time","msg":"m"}\n');
  to.write('{"level":"trace","time":"2026-01-31T12:00:00.000Z"}\n');
  to.write("null\n");
  to.write(JSON.stringify({ level: 30, time: 0, msg: "é".repeat(6000) }));
  assert.deepEqual(sent.map((entry) => entry.level), ["error", "debug", "info", "info"]);
  assert.deepEqual(sent.map((entry) => entry.environment), ["prod", "prod", "prod", "prod"]);
  assert.equal(sent[1].timestamp, "2026-01-31T12:00:00.000Z");
  assert.ok(Buffer.byteLength(sent[3].message) <= 10240);
});

test("what is sent as a page may end is bounded, and flushed", async () => {
  const bodies = [];
  let answer;
  const answered = new Promise((resolve) => { answer = resolve; });
  const post = async (_, body, key, leaving) => {
    bodies.push({ bytes: Buffer.byteLength(body), leaving, key });
    await answered;
    return { status: 200, body: {} };
  };
  const client = new Core(post, settings);
  for (let i = 0; i < 300; i++) client.info("見".repeat(100));
  client.leave();
  for (let i = 0; i < 10; i++) client.info("later"), client.leave();
  assert.ok(bodies.length > 1 && bodies.every((one) => one.leaving && one.bytes <= 60_000 && /^[0-9a-f]{32}$/.test(one.key)));
  assert.equal(await client.flush(50), false);
  answer();
  assert.equal(await client.flush(), true);
  assert.equal(client.stats().accepted, 310);
  await client.close();
});

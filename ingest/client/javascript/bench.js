/** What a call of a logger costs its caller, beside pino, and what it costs the process with all that is sent. `npm install --no-save pino` first. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";

import { Client } from "./client.js";

const rounds = 200;
const calls = 500; // of a round, after which what was logged is sent

const metadata = { order: 1234567, customer: "c_81723", total: 99.5, paid: true };

async function measure(name, log, done = () => {}) {
  for (let i = 0; i < 5_000; i++) log("order placed", metadata);
  await done();
  let called = 0n;
  const cpu = process.cpuUsage();
  for (let round = 0; round < rounds; round++) {
    const begun = process.hrtime.bigint();
    for (let i = 0; i < calls; i++) log("order placed", metadata);
    called += process.hrtime.bigint() - begun;
    await new Promise(setImmediate);
  }
  await done();
  const { user, system } = process.cpuUsage(cpu);
  const each = (nanoseconds) => Math.round(nanoseconds / (rounds * calls)).toString().padStart(7);
  console.log(`${name.padEnd(20)} ${each(Number(called))} ns a call, ${each((user + system) * 1000)} ns of the processor with sending`);
}

async function accept(_, body) {
  await promisify(gzip)(body, { level: 1 });
  return { status: 200, body: { rejected: 0 } };
}

const client = new Client(accept, { baseURL: "https://weir.test/v1", apiKey: "weir_bench" });
await measure("weir", (message, fields) => client.info(message, fields), () => client.flush());
await client.close();

let pino;
try {
  ({ default: pino } = await import("pino"));
} catch {
  console.log("WITHOUT PINO: npm install --no-save pino, in this folder");
}
if (pino) {
  const to = pino.destination({ dest: "/dev/null", sync: false });
  const logger = pino({}, to);
  await measure("pino to /dev/null", (message, fields) => logger.info(fields, message), () => new Promise((resolve) => to.flush(resolve)));
}

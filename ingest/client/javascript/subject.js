/** Logs so many entries, as the conformance suite of the clients asks, and prints what became of them. */

import { Client } from "./index.js";

const count = Number(process.argv[2]);
const client = new Client({ interval: 50, deadline: Number(process.argv[3]) * 1000, maxEntries: 200_000, maxBytes: 256 << 20 });
const took = [];
for (let i = 0; i < count; i++) {
  const begun = process.hrtime.bigint();
  if (i % 10 === 0) client.error(`entry ${i}`, new TypeError(`${i}`, { cause: new RangeError("cause") }));
  else client.info(`entry ${i}`, { number: i, odd: "\udc80", big: 1n, nan: NaN });
  took.push(Number(process.hrtime.bigint() - begun) / 1000);
}
await client.flush(120_000);
await client.close();
client.info("after close");
const { accepted, dropped } = client.stats();
delete dropped.closed;
took.sort((a, b) => a - b);
console.log(JSON.stringify({ accepted, dropped, p50_us: took[count >> 1], p99_us: took[Math.floor(count * 0.99)] }));

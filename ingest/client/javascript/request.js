/** Requests: compressed, over a connection that is kept open. */

import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

import { answerOf } from "./client.js";

const compress = promisify(gzip);
const agents = new Map(); // by CA file

function agentOf(caFile) {
  if (!agents.has(caFile)) agents.set(caFile, new Agent({ keepAlive: true, maxSockets: 2, ca: caFile ? readFileSync(caFile) : undefined }));
  return agents.get(caFile);
}

/** Sends a body. It never fails: status 0 means that no answer came. */
export async function post({ baseURL, apiKey, caFile }, body, idempotencyKey) {
  try {
    const packed = await compress(body, { level: 1 });
    return await new Promise((resolve, reject) => {
      const sent = request(`${String(baseURL).replace(/\/+$/, "")}/logs`, {
        method: "POST", agent: agentOf(caFile), timeout: 30_000,
        headers: {
          "x-api-key": apiKey, "Content-Type": "application/json", "Content-Encoding": "gzip", "Content-Length": packed.length,
          "Idempotency-Key": idempotencyKey, "User-Agent": `weir-javascript/0.1.0 node/${process.versions.node}`,
        },
      }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("error", reject);
        response.on("end", () => resolve(answerOf(response.statusCode, (name) => response.headers[name], Buffer.concat(parts).toString())));
      });
      sent.on("timeout", () => sent.destroy(new Error("no answer within 30 s")));
      sent.on("error", reject);
      sent.end(packed);
    });
  } catch (failure) {
    return { status: 0, body: { detail: failure.message } };
  }
}

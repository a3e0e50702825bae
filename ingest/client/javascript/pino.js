/** A destination of pino: pino(options, weir()). */

import { Client, shortened } from "./index.js";
import { levelNamed } from "./queue.js";

const names = { 10: "debug", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal" };

/** The level of a number, or of a label, as formatters write. */
function levelOf(level) {
  if (typeof level === "string") return levelNamed(level);
  return names[Math.min(Math.max(Math.floor(level / 10) * 10, 10), 60)] ?? "info";
}

function timeOf(time) {
  const at = new Date(time ?? Date.now());
  return (Number.isNaN(at.getTime()) ? new Date() : at).toISOString();
}

export default function weir(options = {}) {
  const client = options.client ?? new Client(options);
  return {
    client,
    write(line) {
      let record;
      try {
        record = JSON.parse(line);
      } catch {
        record = undefined;
      }
      if (record === null || typeof record !== "object") return client.info(line.trimEnd());
      const { level, time, msg, err, ...others } = record;
      const entry = { timestamp: timeOf(time), level: levelOf(level), message: shortened(String(msg ?? err?.message ?? "")), metadata: others };
      if (err) {
        const { type, message, stack, ...context } = err;
        entry.error = { type, message, stack_trace: String(stack ?? "").split("\n").filter(Boolean), context };
      }
      client.send(entry);
    },
  };
}

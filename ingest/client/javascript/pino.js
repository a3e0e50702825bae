/** A destination of pino: pino(options, weir()). */

import { Client } from "./index.js";

const names = { 10: "debug", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal" };

function levelOf(number) {
  return names[Math.min(Math.max(Math.floor(number / 10) * 10, 10), 60)] ?? "info";
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
        return client.info(line.trimEnd());
      }
      const { level, time, msg, err, ...others } = record;
      const entry = { timestamp: new Date(time ?? Date.now()).toISOString(), level: levelOf(level), message: String(msg ?? err?.message ?? ""), metadata: others };
      if (err) {
        const { type, message, stack, ...context } = err;
        entry.error = { type, message, stack_trace: String(stack ?? "").split("\n").filter(Boolean), context };
      }
      client.send(entry);
    },
  };
}

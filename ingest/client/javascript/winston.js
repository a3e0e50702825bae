/** A transport of winston: createLogger({transports: [await weir()]}). It needs winston-transport, which winston has. */

import { Client } from "./index.js";

export default async function weir(options = {}) {
  const { default: Transport } = await import("winston-transport");
  const client = options.client ?? new Client(options);
  return new (class extends Transport {
    client = client;

    log(info, callback) {
      const { level, message, timestamp, stack, ...others } = info;
      const failure = info instanceof Error ? info : stack ? Object.assign(new Error(message), { stack, name: info.name ?? "Error" }) : undefined;
      client.log(level, message, failure ? { ...others, error: failure } : others);
      callback();
    }

    close() {
      return client.close();
    }
  })(options);
}

/** Sends logs to Weir from Node, without ever blocking or harming the program. */

import { webcrypto } from "node:crypto";

import { Client as Core, open } from "./client.js";
import { post } from "./request.js";

export { errorOf, shortened, waitOf } from "./client.js";

globalThis.crypto ??= webcrypto; // Node 18

process.on("beforeExit", () => {
  for (const client of open) client.close();
});

export class Client extends Core {
  constructor(options = {}) {
    super(post, { baseURL: process.env.WEIR_BASE_URL, apiKey: process.env.WEIR_API_KEY, caFile: process.env.WEIR_CA_FILE, ...options });
  }
}

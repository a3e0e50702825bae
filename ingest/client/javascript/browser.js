/** Sends logs to Weir from web pages, with a key that lists the page's origin. */

import { answerOf, Client as Core, open } from "./client.js";

export { errorOf } from "./client.js";

const maxKept = 60_000; // bytes of a request that outlives its page: browsers allow 64 KiB

// Pages may end without a word after they are hidden.
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") for (const client of open) client.leave();
});
addEventListener("pagehide", () => {
  for (const client of open) client.leave();
});

export class Client extends Core {
  #listening = new AbortController();

  /** With captureErrors, what a page does not catch is an entry as well. */
  constructor({ captureErrors = false, ...options } = {}) {
    super(post, { maxEntries: 5_000, maxBytes: 4 << 20, ...options });
    if (!captureErrors) return;
    const { signal } = this.#listening;
    addEventListener("error", (event) => this.error(event.message, { error: event.error }), { signal });
    addEventListener("unhandledrejection", ({ reason }) => {
      if (reason instanceof Error) this.error(reason.message, reason);
      else this.error("unhandled rejection", { reason });
    }, { signal });
  }

  close(timeout) {
    this.#listening.abort();
    return super.close(timeout);
  }
}

/** Sends a body. It never fails: status 0 means that no answer came. */
async function post({ baseURL, apiKey }, body, idempotencyKey, leaving) {
  const headers = { "x-api-key": apiKey, "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
  const send = async (packed) => {
    const answer = await fetch(`${String(baseURL).replace(/\/+$/, "")}/logs`, {
      method: "POST", headers, body: packed, credentials: "omit", keepalive: packed.size <= maxKept, signal: AbortSignal.timeout(30_000),
    });
    return answerOf(answer.status, (name) => answer.headers.get(name), await answer.text());
  };
  try {
    const plain = new Blob([body]);
    if (leaving || typeof CompressionStream === "undefined") return await send(plain); // a page that ends waits for nothing
    headers["Content-Encoding"] = "gzip";
    return await send(await new Response(plain.stream().pipeThrough(new CompressionStream("gzip"))).blob());
  } catch (failure) {
    return { status: 0, body: { detail: failure.message } };
  }
}

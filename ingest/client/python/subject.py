"""Logs so many entries, as the conformance suite of the clients asks, and prints what became of them."""

import json
import logging
import sys
import time

import weir

count, client = int(sys.argv[1]), weir.Client(interval=0.05, deadline=float(sys.argv[2]), max_entries=200_000, max_bytes=256 << 20)
log = logging.getLogger("subject")
log.propagate = False
log.setLevel(logging.DEBUG)
log.addHandler(weir.Handler(client))
took = []
for i in range(count):
    begun = time.perf_counter()
    if i % 10 == 0:
        try:
            raise KeyError(i)
        except KeyError:
            log.exception("entry %d", i)
    else:
        log.info("entry %d", i, extra={"number": i, "odd": "\udc80", "nan": float("nan")})
    took.append(time.perf_counter() - begun)
client.flush(120)
client.close()
log.info("after close")
stats = client.stats()
took.sort()
print(json.dumps({"accepted": stats.accepted, "dropped": {reason: n for reason, n in stats.dropped.items() if reason != "closed"},
                  "p50_us": took[len(took) // 2] * 1e6, "p99_us": took[len(took) * 99 // 100] * 1e6}))

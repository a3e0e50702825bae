"""What a call of logging costs its caller, beside a StreamHandler, and what it costs the process with all that is sent."""

import gzip
import logging
import os
import time
from typing import List

import weir
from weir import client as module
from weir.transport import Answer

CALLS = 20_000


def measure(name: str, handler: logging.Handler) -> None:
    log = logging.getLogger(name)
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    for _ in range(1_000):
        log.info("order placed", extra={"order": 1234567, "customer": "c_81723", "total": 99.5, "paid": True})
    cpu, called = time.process_time(), time.thread_time()
    for _ in range(CALLS):
        log.info("order placed", extra={"order": 1234567, "customer": "c_81723", "total": 99.5, "paid": True})
    called = time.thread_time() - called
    if isinstance(handler, weir.Handler):
        handler.client.flush(60)
    whole = time.process_time() - cpu
    print(f"{name:20} {called / CALLS * 1e9:7.0f} ns a call, {whole / CALLS * 1e9:7.0f} ns of the processor with sending")


class Accepting:
    """A transport that compresses all, and sends it nowhere."""

    def __init__(self, *_: object) -> None:
        pass

    def post(self, entries: List[bytes], _: str) -> Answer:
        gzip.compress(b",".join(entries), 1)
        return Answer(200, {}, {"rejected": 0})

    def close(self) -> None:
        pass


formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
stream = logging.StreamHandler(open(os.devnull, "w", encoding="utf-8"))
stream.setFormatter(formatter)
measure("StreamHandler", stream)
module.Transport = Accepting  # type: ignore[assignment,misc]
measure("weir", weir.Handler(weir.Client("https://weir.test/v1", "weir_bench")))

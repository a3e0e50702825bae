"""A client that sends entries in the background."""

import asyncio
import atexit
import json
import math
import os
import sys
import threading
import time
import uuid
import weakref
from dataclasses import dataclass, field
from datetime import datetime, timezone
from multiprocessing import util as processes
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .buffer import LEVELS, MAX_ENTRIES, NAMES, Buffer
from .transport import Answer, Transport

Entry = Dict[str, Any]

MAX_ENTRY_BYTES = 512 << 10
MAX_MESSAGE_BYTES = 10 << 10


@dataclass
class Stats:
    """What became of entries so far."""

    accepted: int = 0
    dropped: Dict[str, int] = field(default_factory=dict)  # by reason


class Client:
    """Sends entries. Its methods can be called from every thread, and after a fork.

    base_url, api_key, ca_file  of WEIR_BASE_URL, WEIR_API_KEY and WEIR_CA_FILE unless given
    environment                 of each entry that names none
    interval                    seconds that an entry waits for others
    max_entries, max_bytes      that wait; beyond, the lowest level is dropped first
    deadline                    seconds that a batch is tried to be sent
    redact                      changes an entry before it is encoded, or drops it by returning None
    on_drop                     is called with a reason and a number of entries, by the thread that drops them;
                                not for what is dropped of its own logs
    """

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        ca_file: Optional[str] = None,
        *,
        environment: Optional[str] = None,
        interval: float = 1.0,
        max_entries: int = 50_000,
        max_bytes: int = 32 << 20,
        deadline: float = 300.0,
        redact: Optional[Callable[[Entry], Optional[Entry]]] = None,
        on_drop: Optional[Callable[[str, int], None]] = None,
    ) -> None:
        self._transport_args = (
            given(base_url, "base_url", "WEIR_BASE_URL"),
            given(api_key, "api_key", "WEIR_API_KEY"),
            ca_file or os.environ.get("WEIR_CA_FILE") or None,
            f"weir-python/0.1.0 python/{sys.version_info[0]}.{sys.version_info[1]}",
        )
        Transport(*self._transport_args)  # refuses wrong settings now
        self._environment = environment
        self._interval = interval
        self._bounds = (max_entries, max_bytes)
        self._deadline = deadline
        self._redact = redact
        self._on_drop = on_drop
        self._begin()
        _clients.add(self)

    def __repr__(self) -> str:
        return f"weir.Client({self._transport_args[0]!r})"

    def log(
        self,
        level: str,
        message: str,
        *,
        timestamp: Optional[datetime] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        error: Optional[Mapping[str, Any]] = None,
        environment: Optional[str] = None,
    ) -> None:
        """Queues an entry. It never waits, and never raises for a value that can't be sent."""
        try:
            at = timestamp or datetime.now(timezone.utc)
            entry: Entry = {
                "timestamp": at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "level": level_named(level),
                "message": shortened(str(message)),
            }
            if environment:
                entry["environment"] = environment
            if metadata:
                entry["metadata"] = dict(metadata)
            if error:
                entry["error"] = dict(error)
        except Exception:  # a logger must not harm its program
            self._drop("not_json", 1)
            return
        self.send(entry)

    def send(self, entry: Entry) -> None:
        """Queues an entry that has all its members."""
        if self._closed or self._refused:
            self._drop("closed" if self._closed else self._refused, 1)
            return
        try:
            if self._environment and entry.get("environment") is None:
                entry = {**entry, "environment": self._environment}
            if self._redact is not None:
                changed = self._redact(entry)
                if changed is None:
                    return
                entry = changed
            text = encoded_without(entry)
        except Exception:  # a logger must not harm its program
            self._drop("not_json", 1)
            return
        if len(text) > MAX_ENTRY_BYTES:
            self._drop("entry_too_large", 1)
            return
        for _ in self._buffer.add(str(entry.get("level", "info")) if entry.get("level") in LEVELS else "info", text):
            self._drop("queue_full", 1)
        if self._worker is None:
            self._start()

    def flush(self, timeout: float = 10.0) -> bool:
        """Waits until all that was queued before was sent or dropped; False: not in time."""
        until = time.monotonic() + timeout
        behind = self._buffer.end()  # what comes later is not waited for, since others may log all the time
        with self._idle:
            while min(self._buffer.begin(), self._sending) < behind:
                self._buffer.hurry()
                left = until - time.monotonic()
                if left <= 0 or self._worker is None:
                    return False
                self._idle.wait(min(left, 0.2))
        return True

    async def aflush(self, timeout: float = 10.0) -> bool:
        """flush for asyncio, without blocking its loop."""
        return await asyncio.get_running_loop().run_in_executor(None, self.flush, timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Flushes, and ends. Entries that come later, and those left after the timeout, are dropped."""
        self._closed = True
        if self._ended.is_set():  # by another handler, or at exit
            return len(self._buffer) == 0
        done = self.flush(timeout)
        self._ended.set()
        self._buffer.hurry()
        if not done:
            self._drop("closed", len(self._buffer))
        return done

    def stats(self) -> Stats:
        with self._counts:
            return Stats(self._stats.accepted, dict(self._stats.dropped))

    def _begin(self) -> None:
        self._buffer = Buffer(*self._bounds)
        self._idle = threading.Condition()
        self._counts = threading.RLock()  # a signal handler or a finalizer may log in between
        self._stats = Stats()
        self._unreported: Dict[str, int] = {}
        self._telling = threading.local()  # whether on_drop is being called
        self._sending: float = math.inf  # the place of the first entry that is being sent
        self._closed = False
        self._refused = ""  # the code with which the server refused the key
        self._ended = threading.Event()
        self._worker: Optional[threading.Thread] = None
        self._starting = threading.RLock()

    def _start(self) -> None:
        with self._starting:
            if self._worker is None and not self._ended.is_set():
                self._worker = threading.Thread(target=self._run, name="weir", daemon=True)
                self._worker.start()

    def _run(self) -> None:
        transport = Transport(*self._transport_args)
        while not self._ended.is_set():
            self._buffer.wait(self._interval)
            self._sending = self._buffer.begin()
            batch = self._buffer.take()
            try:
                if batch:
                    self._deliver(transport, batch)
            except Exception:  # must never end this thread
                self._drop("failed", len(batch))
            with self._idle:
                self._sending = math.inf
                self._idle.notify_all()
        transport.close()

    def _deliver(self, transport: Transport, batch: List[Tuple[str, bytes]]) -> None:
        if self._refused:
            self._drop(self._refused, len(batch))
            return
        entries = [text for _, text in batch]
        reported = self._take_unreported() if len(entries) < MAX_ENTRIES else {}
        if reported:
            entries.append(report_of(reported))
        key, until, attempt = str(uuid.uuid4()), time.monotonic() + self._deadline, 0
        while True:
            answer = transport.post(entries, key)
            if not answer.again:
                break
            wait = answer.wait(attempt)
            if answer.code == "quota_exceeded":
                wait = max(wait, 5.0)
            attempt += 1
            if time.monotonic() + wait > until or self._ended.wait(wait):
                break
        if reported and answer.status != 200:
            self._keep_unreported(reported)
        odd = answer.code == "invalid_json" and len(batch) > 1  # one entry, such as one that nests too deep
        if not odd:
            self._settle(answer, len(batch))
        pause = answer.pause()
        if pause > 0:
            self._ended.wait(pause)
        if odd:
            self._deliver(transport, batch[: len(batch) // 2])
            self._deliver(transport, batch[len(batch) // 2 :])

    def _settle(self, answer: Answer, entries: int) -> None:
        if answer.status != 200:
            if answer.status in (401, 403):
                self._refused = answer.code
            self._drop(answer.code, entries, answer)
            return
        rejected = min(int(answer.body.get("rejected", 0)), entries)
        with self._counts:
            self._stats.accepted += entries - rejected
        self._drop("rejected", rejected, answer)

    def _take_unreported(self) -> Dict[str, int]:
        with self._counts:
            taken, self._unreported = self._unreported, {}
        return taken

    def _keep_unreported(self, reasons: Dict[str, int]) -> None:
        with self._counts:
            for reason, entries in reasons.items():
                self._unreported[reason] = self._unreported.get(reason, 0) + entries

    def _drop(self, reason: str, entries: int, answer: Optional[Answer] = None) -> None:
        if entries <= 0:
            return
        with self._counts:
            self._stats.dropped[reason] = self._stats.dropped.get(reason, 0) + entries
            self._unreported[reason] = self._unreported.get(reason, 0) + entries
            first = self._stats.dropped[reason] == entries
        if first:
            why = f": {answer.body.get('detail')}" if answer is not None and answer.body.get("detail") else ""
            for fault in answer.faults[:1] if answer is not None else []:
                why = f": {fault.get('pointer')}: {fault.get('detail')} {fault.get('fix')}"
            print(f"weir: {reason}, {entries} log entries are dropped{why}", file=sys.stderr)
        if self._on_drop is None or getattr(self._telling, "now", False):  # it logs, and that is dropped as well
            return
        self._telling.now = True
        try:
            self._on_drop(reason, entries)
        except Exception:  # a logger must not harm its program
            pass
        finally:
            self._telling.now = False


def encoded(value: Any) -> bytes:
    """JSON as Weir reads it: without NaN, and in UTF-8, which has no lone surrogates."""
    try:
        text = json.dumps(value, separators=(",", ":"), default=str, allow_nan=False, ensure_ascii=False)
    except ValueError:
        text = json.dumps(finite(value), separators=(",", ":"), default=str, allow_nan=False, ensure_ascii=False)
    return text.encode(errors="replace")


def encoded_without(entry: Entry) -> bytes:
    """encoded, without metadata that can't be, such as a ring of lists."""
    try:
        return encoded(entry)
    except Exception as failure:
        return encoded({**entry, "metadata": {"not_json": str(failure)}})


def finite(value: Any) -> Any:
    """The value with numbers that JSON has not, such as NaN, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def report_of(reasons: Dict[str, int]) -> bytes:
    """An entry that says what was dropped."""
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    message = f"dropped {sum(reasons.values())} log entries: " + ", ".join(f"{n} {reason}" for reason, n in reasons.items())
    return encoded({"timestamp": at, "level": "warn", "message": message, "metadata": {"dropped_by_client": reasons}})


def level_named(name: str) -> str:
    """The level that loggers give a name, in any case."""
    if name in LEVELS:
        return name
    lower = str(name).lower()
    return lower if lower in LEVELS else NAMES.get(lower, "info")


def given(value: Optional[str], name: str, variable: str) -> str:
    found = value or os.environ.get(variable)
    if not found:
        raise ValueError(f"{name} is not given: pass it, or set {variable}")
    return found


def shortened(message: str) -> str:
    """A message within the limit of the interface."""
    if len(message) <= MAX_MESSAGE_BYTES // 4:
        return message
    text = message.encode(errors="replace")
    if len(text) <= MAX_MESSAGE_BYTES:
        return message
    return text[: MAX_MESSAGE_BYTES - 3].decode(errors="ignore") + "…"


_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


def _close_all() -> None:
    for client in list(_clients):
        client.close(5.0)


def _begin_all() -> None:
    """In a child process threads are gone; what waited is sent by the parent."""
    for client in list(_clients):
        client._begin()


def _close_at_end(_: object) -> None:
    """A child of multiprocessing ends without atexit, but with finalizers."""
    processes.Finalize(None, _close_all, exitpriority=0)


class _Child:
    """What a child of multiprocessing calls its hooks with."""


_child = _Child()
processes.register_after_fork(_child, _close_at_end)
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)

"""Entries that wait to be sent: bounded, and the least important go first."""

import threading
from collections import deque
from typing import Deque, Dict, List, Optional, Tuple

LEVELS = ("debug", "info", "warn", "error", "fatal")
NAMES = {"trace": "debug", "verbose": "debug", "warning": "warn", "err": "error", "severe": "error", "critical": "fatal", "crit": "fatal"}

MAX_ENTRIES = 1000  # of a request, by the interface
MAX_BATCH_BYTES = 512 << 10
ENTRY_COST = 200  # bytes of memory beside an entry's text


class Buffer:
    """A queue for each level. Its methods hold its lock for microseconds."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self._lock = threading.RLock()  # a signal handler or a finalizer may log in between
        self._filled = threading.Condition(self._lock)
        self._queues: Dict[str, Deque[Tuple[int, bytes]]] = {level: deque() for level in LEVELS}
        self._order = 0
        self._entries = 0
        self._bytes = 0
        self._urgent = False

    def add(self, level: str, text: bytes) -> List[str]:
        """Adds an entry, and returns the levels of those dropped for it."""
        dropped: List[str] = []
        size = len(text) + ENTRY_COST
        with self._lock:
            while self._entries >= self.max_entries or self._bytes + size > self.max_bytes:
                victim = self._lowest()
                if victim is None or LEVELS.index(victim) >= LEVELS.index(level):
                    dropped.append(level)
                    return dropped
                self._remove(victim, self._queues[victim].popleft()[1])
                dropped.append(victim)
            self._queues[level].append((self._order, text))
            self._order += 1
            self._entries += 1
            self._bytes += size
            if self._entries >= MAX_ENTRIES or self._bytes >= MAX_BATCH_BYTES:
                self._filled.notify()
        return dropped

    def take(self) -> List[Tuple[str, bytes]]:
        """Takes what fits into one request, in the order of arrival."""
        batch: List[Tuple[str, bytes]] = []
        size = 0
        with self._lock:
            while len(batch) < MAX_ENTRIES:
                level = self._first()
                if level is None:
                    break
                text = self._queues[level][0][1]
                if batch and size + len(text) > MAX_BATCH_BYTES:
                    break
                self._queues[level].popleft()
                self._remove(level, text)
                size += len(text)
                batch.append((level, text))
            self._urgent = self._urgent and self._entries > 0
        return batch

    def wait(self, seconds: float) -> None:
        """Waits until a batch is full, somebody hurries, or the time is over."""
        with self._lock:
            full = self._entries >= MAX_ENTRIES or self._bytes >= MAX_BATCH_BYTES
            if not self._urgent and not full:
                self._filled.wait(seconds)

    def hurry(self) -> None:
        with self._lock:
            self._urgent = True
            self._filled.notify_all()

    def begin(self) -> int:
        """The place of the first entry that waits, of all that ever came; end() if none does."""
        with self._lock:
            level = self._first()
            return self._order if level is None else self._queues[level][0][0]

    def end(self) -> int:
        """The place of the next entry."""
        return self._order

    def __len__(self) -> int:
        return self._entries

    def _remove(self, level: str, text: bytes) -> None:
        self._entries -= 1
        self._bytes -= len(text) + ENTRY_COST

    def _lowest(self) -> Optional[str]:
        return next((level for level in LEVELS if self._queues[level]), None)

    def _first(self) -> Optional[str]:
        filled = [level for level in LEVELS if self._queues[level]]
        return min(filled, key=lambda level: self._queues[level][0][0], default=None)

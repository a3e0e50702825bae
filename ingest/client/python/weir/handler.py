"""A handler for the standard library's logging."""

import logging
import traceback
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Dict, Optional, Tuple, Type

from .client import Client

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Handler(logging.Handler):
    """Sends records to Weir. Without a client it makes one of the environment's settings.

    What is in extra becomes metadata, and an exception the error of the entry.
    """

    def __init__(self, client: Optional[Client] = None, level: int = logging.NOTSET) -> None:
        self.client = client if client is not None else Client()  # first: logging closes at exit what its own part has made
        super().__init__(level)

    def emit(self, record: logging.LogRecord) -> None:
        if record.threadName == "weir":  # what sending itself logs would never end
            return
        try:
            self.client.log(
                level_of(record.levelno),
                record.getMessage(),
                timestamp=datetime.fromtimestamp(record.created, timezone.utc),
                metadata=metadata_of(record),
                error=error_of(record.exc_info),
            )
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """logging calls this at exit, with its lock: the client flushes by itself."""

    def close(self) -> None:
        self.client.close()
        super().close()


def level_of(number: int) -> str:
    if number >= logging.CRITICAL:
        return "fatal"
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"


def metadata_of(record: logging.LogRecord) -> Dict[str, Any]:
    metadata: Dict[str, Any] = {name: value for name, value in vars(record).items() if name not in _STANDARD and not name.startswith("_")}
    metadata["logger"] = record.name
    metadata["source"] = f"{record.pathname}:{record.lineno}"
    return metadata


ExcInfo = Tuple[Optional[Type[BaseException]], Optional[BaseException], Optional[TracebackType]]


def error_of(exc_info: Any) -> Optional[Dict[str, Any]]:
    if not isinstance(exc_info, tuple) or exc_info[0] is None:
        return None
    kind, failure, trace = exc_info
    lines = "".join(traceback.format_exception(kind, failure, trace)).splitlines()
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return {"type": name, "message": str(failure), "stack_trace": lines}

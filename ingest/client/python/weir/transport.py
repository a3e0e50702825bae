"""One request to Weir, and what its answer asks of the sender."""

import gzip
import http.client
import json
import random
import ssl
from typing import Any, Dict, List, Optional
from urllib.parse import urlsplit

REQUEST_TIMEOUT = 30.0  # seconds


class Answer:
    """What became of a request: status 0 means that no answer came."""

    def __init__(self, status: int, headers: Dict[str, str], body: Dict[str, Any]) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def again(self) -> bool:
        """The same request may have another answer later."""
        return self.status in (0, 429) or self.status >= 500

    @property
    def code(self) -> str:
        return str(self.body.get("code", "no_answer" if self.status == 0 else self.status))

    @property
    def faults(self) -> List[Dict[str, Any]]:
        faults = self.body.get("errors")
        return faults if isinstance(faults, list) else []

    def wait(self, attempt: int) -> float:
        """Seconds before the next attempt: with full jitter, never before Retry-After."""
        backoff = random.uniform(0, min(60.0, 0.5 * 2**attempt))
        return max(backoff, number(self.headers.get("retry-after")))

    def pause(self) -> float:
        """Seconds until the rate has a token again; 0 while it has some."""
        if self.status == 0 or number(self.headers.get("x-ratelimit-remaining"), 1) > 0:
            return 0.0
        limit = number(self.headers.get("x-ratelimit-limit"))
        return 60.0 / limit if limit > 0 else 0.0


def number(text: Optional[str], default: float = 0.0) -> float:
    try:
        return float(text) if text is not None else default
    except ValueError:
        return default


class Transport:
    """A connection that is kept open. Only one thread may use it."""

    def __init__(self, base_url: str, api_key: str, ca_file: Optional[str], user_agent: str) -> None:
        address = urlsplit(base_url)
        if address.scheme != "https" or not address.hostname:
            raise ValueError(f"the base URL is {base_url!r}; it must begin with https:// and a host, such as https://logs.example.com/v1")
        if not api_key.startswith("weir_"):
            raise ValueError("the API key must begin with weir_; create one under API Keys")
        self._host = address.hostname
        self._port = address.port or 443
        self._path = address.path.rstrip("/") + "/logs"
        self._headers = {
            "x-api-key": api_key,
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": user_agent,
        }
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._connection: Optional[http.client.HTTPSConnection] = None

    def post(self, entries: List[bytes], idempotency_key: str) -> Answer:
        body = gzip.compress(b'{"logs":[' + b",".join(entries) + b"]}", 1)
        try:
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=REQUEST_TIMEOUT, context=self._tls)
            self._connection.request("POST", self._path, body, {**self._headers, "Idempotency-Key": idempotency_key})
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            return Answer(0, {}, {"detail": str(failure)})
        headers = {name.lower(): value for name, value in response.getheaders()}
        if headers.get("connection", "").lower() == "close":
            self.close()
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = {}
        return Answer(response.status, headers, decoded if isinstance(decoded, dict) else {})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

"""What no server is needed for: go test ./client/conformance runs it."""

import json
import logging
import multiprocessing
import os
import threading
import time
import unittest
from unittest import mock

import weir
from weir.buffer import Buffer
from weir.client import encoded, shortened
from weir.transport import Answer


def client(**options):
    return weir.Client("https://127.0.0.1:1/v1", "weir_x", interval=3600, **options)


class TestBuffer(unittest.TestCase):
    def test_drops_the_lowest_level_first(self):
        buffer = Buffer(max_entries=3, max_bytes=1 << 20)
        for level in ("info", "debug", "error"):
            self.assertEqual(buffer.add(level, b"{}"), [])
        self.assertEqual(buffer.add("warn", b"{}"), ["debug"])
        self.assertEqual(buffer.add("info", b"{}"), ["info"])  # nothing lower waits: it is the one
        self.assertEqual([level for level, _ in buffer.take()], ["info", "error", "warn"])

    def test_is_bounded_by_bytes(self):
        buffer = Buffer(max_entries=1000, max_bytes=1000)
        dropped = sum(len(buffer.add("info", b"x" * 200)) for _ in range(10))
        self.assertEqual((len(buffer), dropped), (2, 8))
        self.assertEqual(buffer.add("fatal", b"x" * 2000), ["info", "info", "fatal"])

    def test_takes_what_fits_into_a_request(self):
        buffer = Buffer(max_entries=5000, max_bytes=1 << 30)
        for _ in range(1500):
            buffer.add("info", b"{}")
        self.assertEqual([len(buffer.take()) for _ in range(3)], [1000, 500, 0])


class TestFlush(unittest.TestCase):
    def test_ends_though_others_log(self):
        class Slow:
            def __init__(self, *_):
                pass

            def post(self, entries, _):
                time.sleep(0.01)
                of.log("info", "later")
                return Answer(200, {}, {})

            def close(self):
                pass

        with mock.patch("weir.client.Transport", Slow):
            of = client()
            of.log("info", "before")
            self.assertTrue(of.flush(5))
            of._refused = "stopped"
            of.close(1)


class TestEntries(unittest.TestCase):
    def test_are_json(self):
        text = encoded({"a": float("nan"), "b": [float("inf")], "c": "\udc80", "d": object, "é": 1})
        self.assertEqual(json.loads(text), {"a": "nan", "b": ["inf"], "c": "?", "d": str(object), "é": 1})

    def test_have_messages_within_the_limit(self):
        self.assertEqual(shortened("é" * 5120), "é" * 5120)
        self.assertLessEqual(len(shortened("é" * 5121).encode()), 10240)

    def test_are_redacted(self):
        sent = []
        of = client(redact=lambda entry: None if "password" in entry["message"] else sent.append(entry))
        of.log("info", "password")
        of.log("info", "hello")
        self.assertEqual([entry["message"] for entry in sent], ["hello"])

    def test_have_the_environment_of_the_client(self):
        sent = []
        of = client(redact=sent.append, environment="prod")
        of.log("info", "m")
        of.log("info", "m", environment="dev")
        of.send({"timestamp": "2026-01-31T12:00:00Z", "level": "info", "message": "m"})
        self.assertEqual([entry["environment"] for entry in sent], ["prod", "dev", "prod"])

    def test_have_levels_by_their_common_names(self):
        sent = []
        of = client(redact=sent.append)
        for name in ("WARNING", "Error", "critical", "trace", "loud", None):
            of.log(name, "m")
        self.assertEqual([entry["level"] for entry in sent], ["warn", "error", "fatal", "debug", "info", "info"])

    def test_that_on_drop_logs_do_not_call_it_again(self):
        told = []

        def on_drop(reason, entries):
            told.append(reason)
            of.log("info", "dropped")

        of = client(max_entries=1, on_drop=on_drop)
        of.log("error", "m")
        of.log("info", "m")
        self.assertEqual((told, of.stats().dropped), (["queue_full"], {"queue_full": 2}))
        of.log("info", "m")
        self.assertEqual(len(told), 2)

    def test_without_settings_leave_no_handler(self):
        with mock.patch.dict(os.environ, clear=True), self.assertRaises(ValueError):
            weir.Handler()
        logging.shutdown()  # as at exit, it would close what was not made whole

    def test_that_cannot_be_sent_harm_nobody(self):
        class Evil:
            def __str__(self):
                raise RuntimeError

        of, log = client(), logging.getLogger("evil")
        log.addHandler(weir.Handler(of))
        log.propagate = False
        of.log("info", "m", metadata={"evil": Evil()})
        log.warning("m", extra={"evil": Evil()})
        of.log("info", Evil())
        of.log("info", "m", metadata=[1])
        self.assertEqual(of.stats().dropped, {"not_json": 2})
        self.assertEqual([json.loads(text)["metadata"] for _, text in of._buffer.take()], [{"not_json": ""}] * 2)

    def test_can_come_while_another_is_queued(self):
        """From a signal handler or a finalizer, in the thread that holds the lock."""
        of = client()
        done = threading.Event()

        def log():
            with of._buffer._lock, of._counts, of._starting:
                of.log("info", "m")
                of.log("info", "m", metadata=[1])
            done.set()

        threading.Thread(target=log, daemon=True).start()
        self.assertTrue(done.wait(5))
        self.assertEqual(len(of._buffer), 1)


class TestClient(unittest.TestCase):
    def test_closes_once(self):
        of = client()
        for _ in range(1500):
            of.log("info", "m")
        self.assertFalse(of.close(0.2))
        dropped, begun = of.stats().dropped["closed"], time.monotonic()
        self.assertFalse(of.close(5.0))
        self.assertLess(time.monotonic() - begun, 1)
        self.assertEqual(of.stats().dropped["closed"], dropped)

    def test_says_what_is_missing(self):
        for given, want in ((("http://x", "weir_x"), "https://"), (("https://x", "k"), "weir_"), (("", "weir_x"), "WEIR_BASE_URL")):
            with self.assertRaisesRegex(ValueError, want):
                weir.Client(*given)

    def test_starts_over_in_a_child(self):
        of = client()
        of.log("info", "of the parent")
        child = os.fork()
        if child == 0:
            empty = len(of._buffer) == 0
            of.log("info", "of the child")
            os._exit(0 if empty and len(of._buffer) == 1 and of._worker is not None else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(of._buffer), 1)

    def test_sends_at_the_end_of_a_child_of_multiprocessing(self):
        fork = multiprocessing.get_context("fork")
        sent, sending = fork.Pipe(duplex=False)

        def post(_, entries, key):
            sending.send(entries)
            return Answer(200, {}, {})

        of = client()
        with mock.patch("weir.client.Transport.post", post):
            child = fork.Process(target=of.log, args=("info", "of the child"))
            child.start()
            child.join(30)
        self.assertTrue(sent.poll(0))
        self.assertIn(b"of the child", sent.recv()[0])

    def test_waits_as_it_is_told(self):
        told = Answer(429, {"retry-after": "7", "x-ratelimit-remaining": "0", "x-ratelimit-limit": "120"}, {})
        self.assertGreaterEqual(told.wait(0), 7)
        self.assertEqual(told.pause(), 0.5)
        self.assertEqual(Answer(200, {"x-ratelimit-remaining": "3"}, {}).pause(), 0)


if __name__ == "__main__":
    unittest.main()

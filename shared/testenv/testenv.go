package testenv

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// Environment variables that choose a backend.
const (
	EnvDatabase = "WEIR_TEST_DATABASE_URL"
	EnvBrokers  = "WEIR_TEST_BROKERS"
	EnvBackend  = "WEIR_TEST_BACKEND" // machine, kafka or containers, see the command backends
)

// Logger writes to the test's log, shown when the test fails or with -v.
func Logger(t testing.TB) *slog.Logger {
	w := &logWriter{t: t}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// logWriter drops what a goroutine logs after its test's end: the
// testing package would panic, or race with the end of the test.
type logWriter struct {
	t     testing.TB
	mu    sync.Mutex
	ended bool
}

func (w *logWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func (w *logWriter) Write(line []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Log(strings.TrimRight(string(line), "\n"))
	}
	return len(line), nil
}

// poll is the longest pause between two checks of Eventually.
const poll = 50 * time.Millisecond

// Eventually calls check until it returns nil, and fails the
// test with its last error after timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, poll) {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %v", timeout, err)
		case <-time.After(pause):
		}
	}
}

package testenv

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// Must ends the test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// poll is the longest pause between two checks of Eventually.
const poll = 50 * time.Millisecond

// Patience is how long tests wait. It is long, as a loaded machine is slow,
// and only a test that fails waits for so long.
const Patience = 5 * time.Minute

// Eventually calls check until it returns nil, and fails the test with
// its last error after Patience.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, poll) {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %v", Patience, err)
		case <-time.After(pause):
		}
	}
}

// Run runs run beside the test until stop is called or the test ends,
// and then waits for it. The test fails if run returns an error. stop
// may be called again.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it did not end in order: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// EnvSeed repeats a run; `make test-faults` sets it.
const EnvSeed = "WEIR_FAULT_SEED"

// Random is the random source of one test, seeded by EnvSeed, else by
// seed; the log has it, to repeat the test.
func Random(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	if text := os.Getenv(EnvSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q: a number", EnvSeed, text)
		}
	}
	t.Logf("repeat with %s=%d", EnvSeed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// EnvRounds is the number of times to repeat a fault, or "full"; `make
// test-faults` sets it.
const EnvRounds = "WEIR_FAULT_ROUNDS"

// Rounds is how often a test repeats a fault: short without EnvRounds.
func Rounds(t testing.TB, short, full int) int {
	t.Helper()
	switch text := os.Getenv(EnvRounds); text {
	case "":
		return short
	case "full":
		return full
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: a number from 1, or full", EnvRounds, text)
		}
		return n
	}
}

// Scratch makes a folder for the data of a test's server, in memory if
// there is room: each test makes a database, which is three hundred
// files; on a disk that takes five times the CPU, and waits.
func Scratch(pattern string) (string, error) {
	if os.Getenv(envFolder) == "" && InMemory() {
		return os.MkdirTemp(inMemory, pattern)
	}
	return os.MkdirTemp("", pattern)
}

// InMemory reports whether the data of servers for tests goes to memory.
func InMemory() bool {
	if folder := os.Getenv(envFolder); folder != "" {
		return strings.HasPrefix(folder, inMemory+"/")
	}
	return hasRoom(inMemory)
}

// envFolder is the folder of all temporary files. `backends` sets it.
const envFolder = "TMPDIR"

// Common holds what all runs on a machine share, whatever folder each has.
const Common = "/tmp"

// inMemory is Linux's file system in memory. In a container it is
// small by default.
const inMemory = "/dev/shm"

// Free space needed in the memory file system, and free memory.
const (
	minFreeTmpfs  = 4 << 30
	minFreeMemory = 8 << 30
)

func hasRoom(dir string) bool {
	var room syscall.Statfs_t
	if syscall.Statfs(dir, &room) != nil || room.Bavail*uint64(room.Bsize) < minFreeTmpfs {
		return false
	}
	info, err := os.Open("/proc/meminfo")
	if err != nil {
		return false
	}
	defer info.Close()
	return available(info) >= minFreeMemory
}

// available reads the memory available to processes from /proc/meminfo;
// 0 if it is missing.
func available(info io.Reader) (bytes uint64) {
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}

package process_test

import (
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/testenv"
)

// The setting applies, unless the runtime's own variable is set.
func TestMemory(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "1GiB")
	process.Memory{MemoryLimit: 1 << 28}.Apply()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("beside GOMEMLIMIT: %d", limit)
	}
	testenv.Must(t, os.Unsetenv("GOMEMLIMIT"))
	for setting, want := range map[int64]int64{0: math.MaxInt64, 1 << 28: 1 << 28} {
		debug.SetMemoryLimit(math.MaxInt64)
		process.Memory{MemoryLimit: setting}.Apply()
		if limit := debug.SetMemoryLimit(-1); limit != want {
			t.Errorf("set to %d: %d", setting, limit)
		}
	}
}

// Under a limit the collector runs less often than Go's default, unless
// the runtime's own variable is set.
func TestCollector(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) })
	for _, c := range []struct {
		limit int64
		gogc  string
		more  bool
	}{{0, "", false}, {1 << 28, "100", false}, {1 << 28, "", true}} {
		t.Setenv("GOGC", c.gogc)
		if c.gogc == "" {
			os.Unsetenv("GOGC")
		}
		debug.SetGCPercent(100)
		process.Memory{MemoryLimit: c.limit}.Apply()
		if got := debug.SetGCPercent(100); (got > 100) != c.more {
			t.Errorf("limit %d, GOGC=%q: %d percent", c.limit, c.gogc, got)
		}
	}
}

// An error about a database's address names its setting, not its value.
func TestCheckDatabaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "WEIR_DATABASE_URL_FILE", "host=db password=secret": "postgres://", "https://weir:secret@db/weir": "postgres://",
	} {
		err := process.CheckDatabaseURL("WEIR_DATABASE_URL", text)
		if err == nil || !strings.HasPrefix(err.Error(), "WEIR_DATABASE_URL is") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := process.CheckDatabaseURL("WEIR_DATABASE_URL", "postgres://weir:secret@db/weir"); err != nil {
		t.Error(err)
	}
}

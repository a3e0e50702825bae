package process_test

import (
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/weirlog/weir/shared/process"
)

// The setting holds, unless the runtime's own variable is set.
func TestMemory(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "1GiB")
	process.Memory{MemoryLimit: 1 << 28}.Apply()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("beside GOMEMLIMIT: %d", limit)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[int64]int64{0: math.MaxInt64, 1 << 28: 1 << 28} {
		debug.SetMemoryLimit(math.MaxInt64)
		process.Memory{MemoryLimit: setting}.Apply()
		if limit := debug.SetMemoryLimit(-1); limit != want {
			t.Errorf("set to %d: %d", setting, limit)
		}
	}
}

package testenv

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

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

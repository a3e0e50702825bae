package testenv

import (
	"os"
	"strconv"
	"testing"
)

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

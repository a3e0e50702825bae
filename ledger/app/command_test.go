package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command refuses an invalid configuration with all faults together.
func TestCommandRefuses(t *testing.T) {
	command := exec.CommandContext(t.Context(), build(t, "ledger"))
	command.Env = append(os.Environ(), "WEIR_LISTEN=:0", "WEIR_TIER_SCALE_BYTES=-5")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("it ran: %s", out)
	}
	for _, part := range []string{"WEIR_BROKERS", "WEIR_DATABASE_URL", "WEIR_TLS_CERT_FILE", "scale"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("nothing about %s in %s", part, out)
		}
	}
}

func build(t testing.TB, command string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), command)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", binary, "../cmd/"+command).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

package app_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv/programs"
)

// The command refuses an invalid configuration with all faults together.
func TestCommandRefuses(t *testing.T) {
	command := exec.CommandContext(t.Context(), programs.Build(t, "ledger/cmd/ledger"))
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

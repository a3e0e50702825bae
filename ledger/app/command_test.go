package app_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/service"
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

// A program beside the ledger reads the same database and log.
func TestOfflineConfig(t *testing.T) {
	config := app.OfflineConfig{
		Servers: service.Servers{DatabaseURL: "postgres://ledger@db/ledger", Brokers: []string{"broker:9092"}, BrokerAccess: bus.Access{User: "ledger"}},
	}
	got := config.Ledger()
	if got.DatabaseURL != config.DatabaseURL || got.Brokers[0] != "broker:9092" || got.BrokerAccess.User != "ledger" {
		t.Errorf("%+v", got)
	}
}

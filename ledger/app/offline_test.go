package app_test

import (
	"testing"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/service"
)

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

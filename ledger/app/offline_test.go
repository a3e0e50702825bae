package app_test

import (
	"testing"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/service"
)

// A program beside the ledger reads the same database and log, by the same
// rules and retention.
func TestOfflineConfig(t *testing.T) {
	config := app.RebuildConfig{
		VerifyConfig: app.VerifyConfig{
			Servers:         service.Servers{DatabaseURL: "postgres://ledger@db/ledger", Brokers: []string{"broker:9092"}, BrokerAccess: bus.Access{User: "ledger"}},
			RetentionConfig: app.RetentionConfig{TransfersMonths: 13},
		},
		RulesConfig: app.RulesConfig{TierIndieBytes: 1000},
	}
	got := config.Ledger()
	if got.DatabaseURL != config.DatabaseURL || got.Brokers[0] != "broker:9092" || got.BrokerAccess.User != "ledger" ||
		got.TransfersMonths != 13 || got.TierIndieBytes != 1000 {
		t.Errorf("%+v", got)
	}
}

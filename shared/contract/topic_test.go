package contract_test

import (
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/contract"
)

// Every topic is made by the one module that owns it.
func TestOwnedBy(t *testing.T) {
	var names []string
	for _, module := range []string{"ingest", "ledger", "grouping", "tenants"} {
		for _, topic := range contract.OwnedBy(module, contract.Topics(0, 0)) {
			names = append(names, topic.Name)
		}
	}
	slices.Sort(names)
	want := []string{contract.TopicAccounts, contract.TopicCredentials, contract.TopicGrouping, contract.TopicIngest, contract.TopicLedger, contract.TopicLogs, contract.TopicTenants}
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("written: %q, want %q", names, want)
	}
}

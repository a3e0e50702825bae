package contract_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// Every topic has one owner, which creates it.
func TestOwnedBy(t *testing.T) {
	var names []string
	for _, module := range []string{"ingest", "ledger", "grouping", "tenants"} {
		for _, topic := range contract.OwnedBy(module, contract.Topics(0, 0)) {
			names = append(names, topic.Name)
		}
	}
	slices.Sort(names)
	want := []string{contract.TopicAccounts, contract.TopicCredentials, contract.TopicErasures, contract.TopicGrouping, contract.TopicIngest, contract.TopicLedger, contract.TopicLogs, contract.TopicOutcomes, contract.TopicTenants}
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("written: %q, want %q", names, want)
	}
}

// Each topic has a bound: it is compacted, its records expire,
// or it has a reason to keep them.
func TestTopicsHaveABound(t *testing.T) {
	for _, topic := range contract.Topics(0, 7*24*time.Hour) {
		forever := topic.Config["cleanup.policy"] == "delete" && topic.Config["retention.ms"] == "-1"
		if topic.Keeps == "" || forever != strings.HasPrefix(topic.Keeps, "forever ") {
			t.Errorf("%s is kept forever: %t, and says that it keeps %q", topic.Name, forever, topic.Keeps)
		}
	}
}

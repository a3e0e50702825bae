package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// eventTypes returns the values of all constants whose names begin with Type.
func eventTypes(t *testing.T) (types []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	testenv.Must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Type") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		testenv.Must(t, err)
		types = append(types, value)
		return false
	})
	return types
}

// Every event type has a sample, hence a golden file, and begins
// with its topic.
func TestEveryEventTypeIsKnown(t *testing.T) {
	types, known := eventTypes(t), samples()
	known[contract.TypeLogsAccepted] = nil // its golden file has another form
	if len(types) < 15 {
		t.Fatalf("found the types %q alone", types)
	}
	for _, eventType := range types {
		if _, found := known[eventType]; !found {
			t.Errorf("%s has no sample", eventType)
		}
		if !onATopic(eventType) {
			t.Errorf("%s is of no topic", eventType)
		}
	}
}

func onATopic(eventType string) bool {
	for _, topic := range contract.Topics(0, 0) {
		if what, found := strings.CutPrefix(eventType, topic.Name+"."); found && what != "" {
			return true
		}
	}
	return false
}

// An account published before accounts named their retention has its tier's.
func TestRetentionOfAccounts(t *testing.T) {
	for _, c := range []struct {
		account contract.Account
		want    int
	}{
		{contract.Account{Tier: "indie"}, 7},
		{contract.Account{Tier: "bootstrapper"}, 30},
		{contract.Account{Tier: "compliance"}, 365},
		{contract.Account{Tier: "scale"}, 90},
		{contract.Account{Tier: "of a newer ledger"}, 365},
		{contract.Account{Tier: "indie", RetentionDays: 14}, 14},
	} {
		if got := c.account.Retention(); got != c.want {
			t.Errorf("%+v is kept for %d days, want %d", c.account, got, c.want)
		}
	}
}

// Each notification is a known event on a topic that is read for it,
// with its own name and meaning.
func TestNotifications(t *testing.T) {
	types, seen := eventTypes(t), map[string]bool{}
	for _, fact := range contract.Notifications() {
		onTopic := slices.ContainsFunc(contract.NotificationTopics(), func(topic string) bool { return strings.HasPrefix(fact.Type, topic+".") })
		if !slices.Contains(types, fact.Type) || !onTopic {
			t.Errorf("%s is no event of a topic that is read", fact.Type)
		}
		if seen[fact.Name] || !regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`).MatchString(fact.Name) || fact.Means == "" {
			t.Errorf("%s is called %q, when %s", fact.Type, fact.Name, fact.Means)
		}
		if found, known := contract.NotificationOf(fact.Type); !known || found != fact {
			t.Errorf("%s is found as %+v", fact.Type, found)
		}
		seen[fact.Name] = true
	}
	if fact, found := contract.NotificationOf(contract.TypeLogsAccepted); found {
		t.Errorf("logs are notified as %+v", fact)
	}
}

// Every topic has one owner, which creates it.
func TestOwnedBy(t *testing.T) {
	var names []string
	for _, module := range []string{"ingest", "ledger", "grouping", "tenants"} {
		for _, topic := range contract.OwnedBy(module, contract.Topics(0, 0)) {
			names = append(names, topic.Name)
		}
	}
	slices.Sort(names)
	want := []string{contract.TopicAccounts, contract.TopicAlerts, contract.TopicCredentials, contract.TopicErasures, contract.TopicGrouping, contract.TopicIngest, contract.TopicLedger, contract.TopicLogs, contract.TopicOutcomes, contract.TopicRules, contract.TopicTenants}
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

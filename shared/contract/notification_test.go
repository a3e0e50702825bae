package contract_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
)

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

package bus

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// An entry of the year 9999 counts as of its acceptance:
// else its group would head every list until then.
func TestTheYear9999HeadsNoList(t *testing.T) {
	accepted := time.Date(2026, 11, 21, 12, 0, 0, 1500, time.UTC)
	for text, want := range map[string]time.Time{
		"9999-12-31T23:59:59.999999999Z": accepted.Truncate(time.Microsecond),
		"2026-11-21T12:00:00.000002Z":    accepted.Truncate(time.Microsecond),
		"2026-11-21T11:59:59.0000019Z":   time.Date(2026, 11, 21, 11, 59, 59, 1000, time.UTC),
		"0000-01-01T00:00:00Z":           time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"yesterday":                      accepted.Truncate(time.Microsecond),
	} {
		if got, _ := eventTime(text, accepted); !got.Equal(want) {
			t.Errorf("%s is seen at %s, want %s", text, got, want)
		}
		if _, ahead := eventTime(text, accepted); ahead != 0 && ahead != 253402300799999999 && ahead != accepted.UnixMicro()+1 || (ahead == 0) == (text > "2026-11-21T12" && text < "y") {
			t.Errorf("%s is ahead at %d", text, ahead)
		}
	}
}

// The event of a new group has all members that were ever
// published. Those of decisions are mapped where they are stored.
func TestEveryEventIsMapped(t *testing.T) {
	fact := outboxFact(postgres.NewGroup{Organization: "acme", Project: "shop", ID: "grp_1", FirstSeen: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC),
		Entry: "ent_1", Environment: "prod", Release: "2.14.0", Cause: "Its first error came in 2.14.0 in prod."})
	if fact.ID != "grp_1/created/2026-11-22" || fact.Organization != "acme" {
		t.Errorf("fact %+v", fact)
	}
	golden, err := os.ReadFile("../../../shared/contract/testdata/" + contract.TypeErrorGroupCreated + ".cause.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := members(t, fact.Body), members(t, golden); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}

func members(t *testing.T, text []byte) []string {
	t.Helper()
	event := map[string]any{}
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return slices.Sorted(maps.Keys(event))
}

// A record costs what applying it takes: many small errors more
// than one of as many bytes, unparsed entries next to nothing.
func TestCost(t *testing.T) {
	value := []byte(strings.Repeat("x", 100_000))
	of := func(errors string) int {
		return cost(bus.Record{Value: value, Headers: []bus.Header{{Key: contract.HeaderErrors, Value: []byte(errors)}}})
	}
	none, one, many := of("0"), of("1"), of("1000")
	if none >= 1000 || one < len(value) || many < 10*one {
		t.Errorf("no error costs %d, one %d, a thousand %d", none, one, many)
	}
	if most := of("9999999999"); most > 200*one {
		t.Errorf("more errors than there is room for cost %d", most)
	}
}

// The facts about decisions are all types of weir.grouping.v1 but those of
// new groups, of mentions, of alerts and for the audit, with members that were published.
func TestEveryDecisionIsMapped(t *testing.T) {
	files, err := filepath.Glob("../../../shared/contract/testdata/" + contract.TopicGrouping + ".*.json")
	files = slices.DeleteFunc(files, func(file string) bool {
		return strings.Contains(file, contract.TypeErrorGroupCreated) || strings.Contains(file, contract.TypeErrorAlertFired) ||
			strings.Contains(file, contract.TypeErrorsChangeReported) || strings.Contains(file, contract.TypeErrorGroupMentioned)
	})
	if err != nil || len(files) != len(factTypes)+1 { // one type has two samples
		t.Fatalf("golden files %v of %d types: %v", files, len(factTypes), err)
	}
	published := map[string]any{}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(golden, &published) != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	change := postgres.Change{Organization: "acme", By: postgres.Author{ID: "mem_1"}, Group: postgres.Group{
		ID: "grp_1", Project: "shop", Version: 7, State: grouping.State{Assignee: grouping.Assignee{ID: "mem_1"}, Links: []grouping.Link{{URL: "https://tracker.example", Webhook: "whk_1"}}},
	}}
	saved := map[string]any{}
	for kind, name := range factTypes {
		change.Decision = grouping.Decision{
			Kind: kind, At: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC), Reason: "why", Release: "2", Environment: "prod", Resolution: grouping.Resolution{Next: true},
			Spike: grouping.Spike{Hour: time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC), Count: 40, Expected: 2.5},
			Into:  "grp_2", From: "grp_3",
		}
		fact, announced := changeFact(change)
		if !announced || fact.Type != name || fact.ID != "grp_1/7/2026-11-22" || json.Unmarshal(fact.Body, &saved) != nil {
			t.Errorf("%s: %+v", kind, fact)
		}
	}
	if got, want := slices.Sorted(maps.Keys(saved)), slices.Sorted(maps.Keys(published)); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	if _, announced := changeFact(postgres.Change{Decision: grouping.Decision{Kind: grouping.WasNoted}}); announced {
		t.Error("a note is announced")
	}
	if _, announced := changeFact(postgres.Change{Decision: grouping.Decision{Kind: grouping.WasMerged, Groups: []string{"grp_2"}}}); announced {
		t.Error("a merge is announced twice")
	}
}

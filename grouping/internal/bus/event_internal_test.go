package bus

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

// The saved events are all types of weir.grouping.v1,
// with all members that were ever published.
func TestEveryEventIsMapped(t *testing.T) {
	fact := outboxFact(postgres.NewGroup{Organization: "acme", Project: "shop", ID: "grp_1", FirstSeen: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)})
	if fact.ID != "grp_1/created/2026-11-22" || fact.Organization != "acme" {
		t.Errorf("fact %+v", fact)
	}
	saved := map[string][]byte{fact.Type: fact.Body}
	files, err := filepath.Glob("../../../shared/contract/testdata/" + contract.TopicGrouping + ".*.json")
	if err != nil || len(files) != len(saved) {
		t.Fatalf("golden files %v of %d events: %v", files, len(saved), err)
	}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		eventType := filepath.Base(file[:len(file)-len(".json")])
		if got, want := members(t, saved[eventType]), members(t, golden); !slices.Equal(got, want) {
			t.Errorf("%s: members %v, want %v", eventType, got, want)
		}
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

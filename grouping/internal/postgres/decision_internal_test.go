package postgres

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
	"github.com/weirlog/weir/shared/contract"
)

// The facts about decisions are all types of weir.grouping.v1 but that of
// new groups, with members that were published.
func TestEveryDecisionIsMapped(t *testing.T) {
	files, err := filepath.Glob("../../../shared/contract/testdata/" + contract.TopicGrouping + ".*.json")
	files = slices.DeleteFunc(files, func(file string) bool { return strings.Contains(file, contract.TypeErrorGroupCreated) })
	if err != nil || len(files) != len(factTypes) {
		t.Fatalf("golden files %v of %d types: %v", files, len(factTypes), err)
	}
	published := map[string]any{}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(golden, &published) != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	m := &Made{Organization: "acme", Group: Group{ID: "grp_1", Project: "shop", Version: 7, State: grouping.State{Assignee: grouping.Assignee{ID: "mem_1"}}}}
	saved := map[string]any{}
	for kind, name := range factTypes {
		fact, announced := factOf(m, grouping.Decision{
			Kind: kind, At: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC), Reason: "why", Release: "2", Environment: "prod", Resolution: grouping.Resolution{Next: true},
		}, grouping.State{}, Author{ID: "mem_1"})
		if !announced || fact.Type != name || fact.ID != "grp_1/7/2026-11-22" || json.Unmarshal(fact.Body, &saved) != nil {
			t.Errorf("%s: %+v", kind, fact)
		}
	}
	if got, want := slices.Sorted(maps.Keys(saved)), slices.Sorted(maps.Keys(published)); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	if _, announced := factOf(m, grouping.Decision{Kind: grouping.WasNoted}, grouping.State{}, Author{}); announced {
		t.Error("a note is announced")
	}
}

package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// A flood of unique types is counted exactly in one overflow group.
// Another organization's new group, and older groups, are unaffected.
func TestAFloodOfTypes(t *testing.T) {
	r := newRig(t)
	r.config.NewGroupsPerHour = 10
	noisy, quiet := r.project("noisy", "shop"), r.project("quiet", "blog")
	hour := time.Now().Truncate(time.Hour)
	accept := func(all ...contract.LogsAccepted) {
		for i := range all {
			all[i].Time = hour
		}
		r.Accept(all...)
	}
	process, _ := r.start()
	accept(logs("noisy", "shop", 1, failure("KnownError", 0)))
	r.awaitApplied()
	const requests, types = 5, 40
	for i := range requests {
		var entries []string
		for k := range types {
			entries = append(entries, failure(fmt.Sprintf("Flood%c%cError", 'A'+i, 'A'+k%26)+string(rune('a'+k/26)), 0))
		}
		accept(logs("noisy", "shop", types+1, append(entries, failure("KnownError", 0))...))
	}
	accept(logs("quiet", "blog", 1, failure("OwnError", 0)))
	r.awaitApplied()
	awaitReady(t, process)
	awaitKeys(t, process, noisy, quiet)
	got := counts(t, process, noisy, "shop")
	if len(got) != 11 || got["KnownError"] != 1+requests || got[""] != requests*types-9 {
		t.Errorf("counts %v", got)
	}
	if got := counts(t, process, quiet, "blog"); len(got) != 1 || got["OwnError"] != 1 {
		t.Errorf("another organization's counts %v", got)
	}
	overflow := list(t, process, noisy, "shop", "?q=more+errors+than").Items
	if len(overflow) != 1 || overflow[0].Title != "More errors than 10 new groups an hour" {
		t.Fatalf("overflow %+v", overflow)
	}
	var g group
	if status := get(t, process, noisy, "/v1/error-groups/"+overflow[0].ID, &g); status != 200 || g.Why.Rule == "" || len(g.Occurrences) == 0 {
		t.Errorf("answered %d: %+v", status, g)
	}
}

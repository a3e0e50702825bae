package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// released is a failure of now in a release.
func released(typ, release string) string {
	text := failure(typ, time.Since(noon))
	return strings.TrimSuffix(text, "}") + `,"metadata":{"release":"` + release + `"}}`
}

// A resolved group is opened again once, by whichever of two processes
// comes first, and while one of them is stopped; a later replay changes nothing.
func TestRegressesOnce(t *testing.T) {
	r := newRig(t)
	first, _ := r.start()
	second, stop := r.start()
	awaitReady(t, first)
	awaitReady(t, second)
	key := r.project("acme", "shop")
	awaitKeys(t, first, key)
	r.Accept(logs("acme", "shop", 1, released("AlphaError", "2.1.0")), logs("acme", "shop", 1, released("AlphaError", "2.2.0")))
	r.awaitApplied()
	group := list(t, first, key, "shop", "").Items[0]
	decide(t, first, key, group.ID, `{"status":"resolved","in_release":"next","assignee":"payments"}`)
	for range 5 {
		r.Accept(logs("acme", "shop", 1, released("AlphaError", "2.2.0")))
	}
	r.awaitApplied()
	if now := list(t, second, key, "shop", "?status=resolved").Items; len(now) != 1 || now[0].Count != 7 {
		t.Fatalf("with the old release it is %+v", now)
	}
	for i := range 40 {
		if i == 20 {
			stop()
		}
		r.Accept(logs("acme", "shop", 1, released("AlphaError", fmt.Sprintf("2.3.%d", i))))
	}
	r.awaitApplied()
	facts := r.awaitDecided(contract.TypeErrorGroupRegressed)
	if len(facts) != 1 || facts[0].Group != group.ID || !strings.HasPrefix(facts[0].Release, "2.3.") || facts[0].Environment != "prod" || facts[0].Assignee != "payments" ||
		facts[0].Actor != "" || !strings.HasSuffix(facts[0].Cause, " in prod after it was resolved in the next release.") {
		t.Errorf("regressed: %+v", facts)
	}
	if now := list(t, first, key, "shop", "?status=unresolved").Items; len(now) != 1 || now[0].Count != 47 {
		t.Errorf("it is %+v", now)
	}
	decide(t, first, key, group.ID, `{"status":"ignored","until":{"count":3}}`)
	for range 5 {
		r.Accept(logs("acme", "shop", 1, released("AlphaError", "2.3.9")))
	}
	r.awaitApplied()
	if ended := r.awaitDecided(contract.TypeErrorGroupUnignored); len(ended) != 1 || ended[0].Cause != "It happened 3 times since it was ignored." {
		t.Errorf("no longer ignored: %+v", ended)
	}
	if resolved := r.awaitDecided(contract.TypeErrorGroupResolved); len(resolved) != 1 || !resolved[0].NextRelease || resolved[0].Actor == "" {
		t.Errorf("resolved: %+v", resolved)
	}
}

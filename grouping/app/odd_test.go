package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/contract"
)

// A new kind of error that several processes
// receive at once creates one group.
func TestRacingProcessesFoundOneGroup(t *testing.T) {
	r := newRig(t)
	key := r.project("acme", "shop")
	const kinds, records = 8, 60
	for i := range records {
		entries := make([]string, kinds)
		for kind := range kinds { // in another order each time
			entries[kind] = failure(fmt.Sprintf("Error%c", 'A'+(kind*5+i)%kinds), time.Duration(i)*time.Second)
		}
		r.Accept(logs("acme", "shop", kinds, entries...))
	}
	process, _ := r.start()
	for range 2 {
		_, _ = r.start()
	}
	r.awaitApplied()
	awaitReady(t, process)
	awaitKeys(t, process, key)
	got := counts(t, process, key, "shop")
	if len(got) != kinds {
		t.Errorf("%d groups %v, want %d", len(got), got, kinds)
	}
	for typ, count := range got {
		if count != records {
			t.Errorf("%s counts %d, want %d", typ, count, records)
		}
	}
	if said := r.awaitFacts(kinds); len(said) != kinds {
		t.Errorf("%d facts, want %d", len(said), kinds)
	}
}

// What a process makes of odd records.
func TestOddRecords(t *testing.T) {
	r := newRig(t)
	process, _ := r.start()
	awaitReady(t, process)
	t.Run("PoisonIsParked", func(t *testing.T) { testPoisonIsParked(t, r, process) })
	t.Run("OddTexts", func(t *testing.T) { testOddTexts(t, r, process) })
}

// Unreadable records are parked with their reason, unchanged;
// records before and after them, even of the same partition, count.
func testPoisonIsParked(t *testing.T, r *rig, process *app.App) {
	key := r.project("poison", "poison-shop")
	cut := logs("poison", "poison-shop", 1, failure("ErrorX", 0))
	cut.Lines = cut.Lines[:len(cut.Lines)-1]
	broken := logs("poison", "poison-shop", 1, `{"level":"error","message":"m","error":{"type":"ErrorY"`)
	short := logs("poison", "poison-shop", 2, failure("ErrorZ", 0))
	short.Entries = 2
	for i, poison := range []contract.LogsAccepted{cut, broken, short} {
		r.Accept(logs("poison", "poison-shop", 1, failure("ErrorA", time.Duration(i)*time.Second)), poison)
	}
	for range 20 {
		r.Accept(logs("poison", "poison-shop", 1, failure("ErrorA", 0)))
	}
	r.awaitApplied()
	awaitKeys(t, process, key)
	if got, want := counts(t, process, key, "poison-shop"), map[string]int64{"ErrorA": 23}; !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if n := r.number(`SELECT count(*) FROM bus_parked WHERE organization = 'poison' AND value IS NOT NULL AND reason <> ''`); n != 3 {
		t.Errorf("%d records are parked, want 3", n)
	}
}

// What JSON allows and Postgres can't store is kept as far as people
// can read it: no text parks a record, or is altered without need.
func testOddTexts(t *testing.T, r *rig, process *app.App) {
	key := r.project("odd", "odd-shop")
	at := `"timestamp":"2026-11-21T12:00:00Z"`
	r.Accept(logs("odd", "odd-shop", 11,
		`{`+at+`,"level":"error","message":"m\u0000","environment":"e\u0000","error":{"type":"Nul\u0000Error","message":"a\u0000b","stack_trace":["\u0000"]}}`,
		`{`+at+`,"level":"error","message":"m","error":{"type":"PackageError","stack_trace":["at com.ac\u0000me.Cart.total(A.java:1)"]}}`,
		`{`+at+`,"level":"fatal","message":"m","\u0065rror":{"\u0074ype":"EscapedError"}}`,
		`{`+at+`,"level":"error","message":"m","Error":{"type":"WrongCase"},"metadata":{"error":{"type":"Nested"}}}`,
		`{`+at+`,"level":"error","message":"m","error":null}`,
		`{`+at+`,"level":"error","message":"m","error":{}}`,
		`{`+at+`,"level":"warn","Level":7,"message":"m","error":{"type":"CaseError","Type":[],"context":{"type":1e999}}}`,
		`{"timestamp":"0000-01-01T00:00:00.000001999Z","level":"error","message":"m","error":{"type":"OldError"}}`,
		`{"timestamp":"9999-12-31T23:59:59.999999999Z","level":"error","message":"m","error":{"type":"LateError"}}`,
		`{`+at+`,"level":"error","message":"m","environment":"`+strings.Repeat("€", 5000)+`","error":{"type":"WideError","message":"`+strings.Repeat("€", 90000)+`"}}`,
		`{`+at+`,"level":"error","message":"m","environment":"a\"{},\\b","error":{"type":"QuoteError","message":"\"{},\\'"}}`,
	))
	r.awaitApplied()
	awaitKeys(t, process, key)
	if n := r.number(`SELECT count(*) FROM bus_parked WHERE organization = 'odd'`); n != 0 {
		t.Fatalf("%d records are parked", n)
	}
	byType := map[string]group{}
	for _, g := range list(t, process, key, "odd-shop", "").Items {
		if status := get(t, process, key, "/v1/error-groups/"+g.ID, &g); status != 200 || len(g.Occurrences) != 1 {
			t.Errorf("group %+v: %d", g, status)
		}
		byType[g.Type] = g
	}
	want := []string{"", "CaseError", "EscapedError", "LateError", "Nul\uFFFDError", "OldError", "PackageError", "QuoteError", "WideError"}
	if got := slices.Sorted(maps.Keys(byType)); !slices.Equal(got, want) {
		t.Errorf("types %q, want %q", got, want)
	}
	if got := byType["QuoteError"].Environments; !slices.Equal(got, []string{`a"{},\b`}) {
		t.Errorf("environments %q", got)
	}
	if got := byType["EscapedError"]; !slices.Equal(got.Levels, []string{"fatal"}) || !slices.Equal(got.Environments, []string{"prod"}) {
		t.Errorf("levels %q in %q, want fatal in the key's environment", got.Levels, got.Environments)
	}
	if got := byType["OldError"].FirstSeen.Format(time.RFC3339Nano); got != "0000-01-01T00:00:00.000001Z" {
		t.Errorf("first seen %s", got)
	}
	if got := byType["LateError"].LastSeen; got.After(time.Now()) {
		t.Errorf("an error of the future was last seen %s", got)
	}
}

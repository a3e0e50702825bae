package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/testenv"
)

// Each accepted error counts once in its group, even if records are delivered
// twice and processes come and go: copies of a record, replays under an
// idempotency key and reused keys add nothing, even if the first of a key had
// no errors. Every group is announced once.
func TestCountsAreExact(t *testing.T) {
	r := newRig(t)
	key := r.project("acme", "shop")
	first, stopFirst := r.start()
	awaitReady(t, first)
	harmless, bad := logs("acme", "quiet", 0, `{"level":"info","message":"fine"}`), logs("acme", "quiet", 1, failure("ErrorA", 0))
	harmless.Idempotency, harmless.Digest = contracttest.Digest("key"), contracttest.Digest("one body")
	bad.Idempotency, bad.Digest = contracttest.Digest("key"), contracttest.Digest("another body")
	quiet := r.project("acme", "quiet")
	r.Accept(harmless, bad)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]int64{}
	feed := func(n int) {
		for i := range n {
			var entries []string
			for range 1 + random.IntN(20) {
				typ := fmt.Sprintf("Error%c", 'A'+random.IntN(6))
				entries = append(entries, failure(typ, time.Duration(random.IntN(1000))*time.Second), `{"level":"error","message":"no error"}`)
				want[typ]++
			}
			accepted := logs("acme", "shop", len(entries)/2, entries...)
			accepted.Idempotency, accepted.Digest = contracttest.Digest(fmt.Sprint(accepted.Batch)), contracttest.Digest("body")
			replay, reused := accepted, accepted
			replay.Batch, reused.Batch, reused.Digest = uuid.NewString(), uuid.NewString(), contracttest.Digest("another body")
			switch i % 3 {
			case 0:
				r.Accept(accepted, accepted, replay)
			case 1:
				accepted.Idempotency, accepted.Digest = "", ""
				r.Accept(accepted, accepted)
			default:
				r.Accept(accepted, reused, replay)
			}
		}
	}
	feed(40)
	second, _ := r.start()
	feed(40)
	stopFirst()
	feed(40)
	r.awaitApplied()
	awaitReady(t, second)
	awaitKeys(t, second, key, quiet)
	if got := counts(t, second, quiet, "quiet"); len(got) != 0 {
		t.Errorf("under a reused key are counted %v", got)
	}
	if got := counts(t, second, key, "shop"); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	var titles []string
	for typ := range want {
		titles = append(titles, "acme "+typ+": it broke")
	}
	slices.Sort(titles)
	if said := r.awaitFacts(len(titles)); !slices.Equal(said, titles) {
		t.Errorf("facts of %v, want %v", said, titles)
	}
}

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

// What a process makes of odd records and keys.
func TestGroups(t *testing.T) {
	r := newRig(t)
	process, _ := r.start()
	awaitReady(t, process)
	t.Run("PoisonIsParked", func(t *testing.T) { testPoisonIsParked(t, r, process) })
	t.Run("OddTexts", func(t *testing.T) { testOddTexts(t, r, process) })
	t.Run("KeysThatReadLess", func(t *testing.T) { testKeysThatReadLess(t, r, process) })
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

// A key of one project reads that project's groups; others look as
// if they did not exist. A key that may only write reads nothing.
func testKeysThatReadLess(t *testing.T, r *rig, process *app.App) {
	full := r.project("less", "less-shop")
	r.project("less", "less-cart")
	narrow := contract.Credential{Kind: contract.CredentialAPIKey, Organization: "less", Project: "less-shop", Environment: "prod", Access: contract.AccessProject}
	own := r.Issue(narrow)
	narrow.Access = contract.AccessWrite
	write := r.Issue(narrow)
	r.Accept(logs("less", "less-shop", 1, failure("ShopError", 0)), logs("less", "less-cart", 1, failure("CartError", 0)))
	r.awaitApplied()
	awaitKeys(t, process, full, own)
	shop, cart := list(t, process, full, "less-shop", "").Items[0].ID, list(t, process, full, "less-cart", "").Items[0].ID
	for _, c := range []struct {
		name, key, path string
		want            int
	}{
		{"its own project", own, "/v1/projects/less-shop/error-groups", 200}, {"a group of it", own, "/v1/error-groups/" + shop, 200},
		{"another project", own, "/v1/projects/less-cart/error-groups", 404}, {"a group of that", own, "/v1/error-groups/" + cart, 404},
		{"all, with a full key", full, "/v1/error-groups/" + cart, 200},
		{"a project, only writing", write, "/v1/projects/less-shop/error-groups", 403}, {"a group, only writing", write, "/v1/error-groups/" + shop, 403},
	} {
		var found page
		if status := get(t, process, c.key, c.path, &found); status != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, status, found.Code, c.want)
		}
	}
}

// Reading groups is a use of the key, published
// at the first use and when the process ends.
func TestReadsAreUses(t *testing.T) {
	r := newRig(t)
	key := r.project("acme", "shop")
	var mu sync.Mutex
	var read int64
	r.Consume(contract.TopicIngest, func(record bus.Record) {
		var used contract.KeyUsed
		if err := json.Unmarshal(record.Value, &used); err != nil || used.Organization != "acme" || record.Header(contract.HeaderSource) != "weir/grouping" {
			t.Errorf("told %s: %v", record.Value, err)
		}
		mu.Lock()
		defer mu.Unlock()
		read += used.Read
	})
	process, stop := r.start()
	awaitReady(t, process)
	awaitKeys(t, process, key)
	for range 3 {
		list(t, process, key, "shop", "")
	}
	stop()
	testenv.Eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		if read != 4 { // one was awaitKeys'
			return fmt.Errorf("%d reads are told, want 4", read)
		}
		return nil
	})
}

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

// While grouping is late, what an organization sends
// beyond its share is deferred, so others' errors need
// not wait. Each error still counts once, in its group.
func TestAFloodIsLeftForLater(t *testing.T) {
	r := newRig(t)
	loud, quiet := r.project("loud", "flood"), r.project("quiet", "shop")
	r.config.BatchRecords = 20
	const flood = 400
	var accepted []contract.LogsAccepted
	for i := range flood {
		accepted = append(accepted, logs("loud", "flood", 1, failure(fmt.Sprintf("Error%c", 'A'+i%5), 0)))
	}
	r.Accept(append(accepted, logs("quiet", "shop", 1, failure("ErrorA", 0)))...)
	published := time.Now()
	testenv.Eventually(t, func() error {
		if time.Since(published) < time.Second {
			return errors.New("grouping would not be late")
		}
		return nil
	})
	process, _ := r.start()
	r.awaitApplied()
	awaitReady(t, process)
	awaitKeys(t, process, loud, quiet)
	if got := counts(t, process, quiet, "shop"); got["ErrorA"] != 1 {
		t.Errorf("counts %v of the quiet one, want 1", got)
	}
	for typ, n := range counts(t, process, loud, "flood") {
		if n != flood/5 {
			t.Errorf("%s counts %d, want %d", typ, n, flood/5)
		}
	}
	testenv.Eventually(t, func() error {
		if r.number(`SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred' AND schemaname = 'grouping'`) == 0 {
			return errors.New("nothing was left for later")
		}
		return nil
	})
}

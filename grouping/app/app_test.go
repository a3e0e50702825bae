package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

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

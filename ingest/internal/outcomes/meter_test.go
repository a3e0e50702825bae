package outcomes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// published records what a meter publishes; down makes the brokers fail.
type published struct {
	counted []Counts
	refused []Refusal
	down    bool
}

var errDown = errors.New("no broker")

func (p *published) Counted(_ context.Context, facts []Counts) error {
	p.counted = append(p.counted, facts...) // perhaps it was published all the same
	if p.down {
		return errDown
	}
	return nil
}

func (p *published) Refused(_ context.Context, facts []Refusal) error {
	if p.down {
		return errDown
	}
	p.refused = append(p.refused, facts...)
	return nil
}

// applied adds up counts like the ledger: each process and sequence once.
func (p *published) applied() map[Count]int64 {
	sums, seen := map[Count]int64{}, map[string]bool{}
	for _, fact := range p.counted {
		if id := fmt.Sprint(fact.Organization, fact.Process, fact.Sequence); !seen[id] {
			seen[id] = true
			for _, count := range fact.Counts {
				requests := count.Requests
				count.Requests, count.Entries, count.Bytes, count.KeyInBody = 0, 0, 0, 0
				sums[count] += requests
			}
		}
	}
	return sums
}

func newMeter(to Publisher) (*Meter, *time.Time) {
	now := start
	return NewMeter(Config{Process: "run_1", Interval: time.Second, Clock: func() time.Time { return now }, To: to}), &now
}

func key(id string) identity.Principal {
	return identity.Principal{ID: id, Organization: "org_1", Project: "prj_1", Environment: "prod"}
}

var accepted = Request{Outcome: contract.OutcomeAccepted, Requests: 1, Entries: 2, Bytes: 30}

// Counts are published once and unchanged, after any retries; without
// requests nothing is.
func TestCountsArePublishedOnce(t *testing.T) {
	to := &published{}
	m, now := newMeter(to)
	publish := func(want error) {
		t.Helper()
		if err := m.Publish(t.Context(), false); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	publish(nil)
	m.Note(key("key_1"), accepted)
	*now = start.Add(time.Second)
	m.Note(key("key_1"), accepted)
	to.down = true
	publish(errDown)
	m.Note(key("key_1"), Request{Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: 1, KeyInBody: true})
	publish(errDown)
	to.down = false
	publish(nil)
	publish(nil)
	publish(nil)
	if len(to.counted) != 4 {
		t.Fatalf("published %d times: %+v", len(to.counted), to.counted)
	}
	want := Counts{Organization: "org_1", Process: "run_1", Sequence: 1, From: start, To: start.Add(time.Second), Counts: []Count{
		{Project: "prj_1", APIKey: "key_1", Environment: "prod", Outcome: contract.OutcomeAccepted, Requests: 2, Entries: 4, Bytes: 60}}}
	for i := range 3 {
		if got := to.counted[i]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("published %+v, want %+v", got, want)
		}
	}
	if last := to.counted[3]; last.Sequence != 2 || len(last.Counts) != 1 || last.Counts[0].KeyInBody != 1 {
		t.Errorf("then %+v", last)
	}
	if m.counters.Load() != 0 {
		t.Errorf("%d counters are in use", m.counters.Load())
	}
}

// An organization is kept until all of it is published, and counted
// again when it returns.
func TestIdleOrganizationsAreDropped(t *testing.T) {
	to := &published{down: true}
	m, _ := newMeter(to)
	left := func(want int) {
		t.Helper()
		if err := m.Publish(t.Context(), true); err != nil && !to.down {
			t.Fatal(err)
		}
		if got := len(m.organizations); got != want {
			t.Errorf("%d organizations are kept, want %d", got, want)
		}
	}
	m.Note(key("key_1"), accepted)
	m.Refuse(Refusal{Organization: "org_2", RequestID: "a"})
	left(2)
	to.down = false
	left(0)
	m.Refuse(refused("key_1", "b", 100, true))
	m.Refuse(refused("key_1", "c", 100, true))
	left(1) // more refusals are gathered
	m.Note(key("key_1"), accepted)
	left(0)
	m.Note(key("key_1"), accepted)
	left(0)
	if got := to.applied()[Count{Project: "prj_1", APIKey: "key_1", Environment: "prod", Outcome: contract.OutcomeAccepted}]; got != 3 {
		t.Errorf("%d requests are counted, want 3", got)
	}
}

// Requests noted during a publication are neither lost nor counted twice.
func TestNothingIsLost(t *testing.T) {
	to := &published{}
	m, _ := newMeter(to)
	var noting sync.WaitGroup
	for range 4 {
		noting.Go(func() {
			for i := range 2000 {
				m.Note(key(fmt.Sprint("key_", i%7)), accepted)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		noting.Wait()
		close(done)
	}()
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		if err := m.Publish(t.Context(), true); err != nil { // drops organizations as well
			t.Fatal(err)
		}
	}
	testenv.Must(t, m.Finish())
	var requests int64
	for _, n := range to.applied() {
		requests += n
	}
	if requests != 8000 {
		t.Errorf("%d requests are published, want 8000", requests)
	}
}

// Beyond the bound of keys, requests are counted without the key.
func TestCountersAreBounded(t *testing.T) {
	to := &published{}
	m, _ := newMeter(to)
	for i := range maxOfOne + 10 {
		m.Note(key(fmt.Sprint("key_", i)), accepted)
	}
	m.Note(key("key_0"), accepted)
	testenv.Must(t, m.Finish())
	sums := to.applied()
	if len(sums) != maxOfOne+1 || sums[Count{Outcome: contract.OutcomeAccepted}] != 10 || m.merged.Load() != 10 {
		t.Errorf("%d counters, %d without a key", len(sums), m.merged.Load())
	}
	for i := range maxCounters + 10 {
		who := key("key_1")
		who.Organization = fmt.Sprint("org_", i)
		m.Note(who, accepted)
	}
	if got := m.counters.Load(); got != maxCounters {
		t.Errorf("%d counters of all organizations, want %d", got, maxCounters)
	}
}

func refused(key, request string, quota int64, exhausts bool) Refusal {
	return Refusal{Organization: "org_1", APIKey: key, RequestID: request, At: start, Quota: quota, Exhausts: exhausts}
}

// ids returns the published requests, each with its number of refusals.
func (p *published) ids() string {
	var ids []string
	for _, fact := range p.refused {
		ids = append(ids, fmt.Sprint(fact.RequestID, ":", fact.Requests))
	}
	slices.Sort(ids)
	p.refused = nil
	return strings.Join(ids, " ")
}

// A key's first refusal is published at once, as is the first that
// exhausts an allowance; others are gathered.
func TestRefusalsAreGathered(t *testing.T) {
	to := &published{}
	m, _ := newMeter(to)
	looks := func(gathered bool, want string) {
		t.Helper()
		if err := m.Publish(t.Context(), gathered); err != nil && !to.down {
			t.Fatal(err)
		}
		if got := to.ids(); got != want {
			t.Fatalf("published %q, want %q", got, want)
		}
	}
	m.Refuse(refused("key_1", "a", 100, false))
	m.Refuse(refused("key_2", "b", 100, true))
	looks(false, "a:1 b:1")
	m.Refuse(refused("key_1", "c", 100, false))
	m.Refuse(refused("key_2", "d", 100, true))
	looks(false, "")
	m.Refuse(refused("key_1", "e", 100, true)) // the first of this key that does
	looks(false, "e:2")
	m.Refuse(refused("key_1", "f", 100, true))
	m.Refuse(refused("key_1", "g", 100, true))
	m.Refuse(refused("key_1", "h", 200, true)) // another allowance
	to.down = true
	looks(false, "")
	to.down = false
	looks(true, "h:3") // d waits for the next round, behind what could not be published
	looks(true, "d:1")
	looks(true, "")
	m.Refuse(refused("key_1", "i", 200, true))
	looks(false, "i:1")
}

// A gathered fact exhausts only the allowance it names.
func TestAnAllowanceIsExhaustedByItsOwnRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		second func(*Refusal)
		want   bool
	}{
		{"the same", func(*Refusal) {}, true},
		{"raised by a grant, and a request that may be repeated", func(r *Refusal) { r.Quota = 200 }, false},
		{"suspended when the next period began", func(r *Refusal) {
			r.PeriodStart, r.Reason = start.AddDate(0, 1, 0), contract.ReasonSuspended
		}, false},
		{"suspended", func(r *Refusal) { r.Reason = contract.ReasonSuspended }, false},
	} {
		to := &published{}
		m, _ := newMeter(to)
		m.Refuse(refused("key_1", "a", 100, true))
		second := refused("key_1", "b", 100, false)
		c.second(&second)
		m.Refuse(second)
		if err := m.Finish(); err != nil || len(to.refused) != 2 {
			t.Fatalf("%s: %v, published %+v", c.name, err, to.refused)
		}
		if got := to.refused[1]; got.RequestID != "b" || got.Exhausts != c.want {
			t.Errorf("%s: published %+v, want that it exhausts: %v", c.name, got, c.want)
		}
	}
}

// Few facts are kept for any number of refused keys.
func TestRefusalsAreBounded(t *testing.T) {
	to := &published{}
	m, _ := newMeter(to)
	for i := range maxRefusals + 100 {
		m.Refuse(refused(fmt.Sprint("key_", i), fmt.Sprint("r", i), 100, true))
	}
	testenv.Must(t, m.Finish())
	var requests int64
	for _, fact := range to.refused {
		requests += fact.Requests
	}
	if len(to.refused) != maxRefusals+2 || requests != maxRefusals+100 {
		t.Errorf("%d facts of %d refusals", len(to.refused), requests)
	}
}

// A refusal is published at once, and counts every interval.
func TestRunPublishes(t *testing.T) {
	facts := make(chan string, 10)
	m := NewMeter(Config{Process: "run_1", Interval: time.Hour, Clock: time.Now, To: channel(facts)})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- m.Run(ctx) }()
	m.Note(key("key_1"), accepted)
	m.Refuse(refused("key_1", "a", 100, true))
	if got := <-facts; got != "refused a" {
		t.Errorf("first came %s", got)
	}
	cancel()
	testenv.Must(t, errors.Join(<-stopped, m.Finish()))
	if got := <-facts; got != "counted 1" {
		t.Errorf("then came %s", got)
	}
}

type channel chan string

func (c channel) Counted(_ context.Context, facts []Counts) error {
	for _, fact := range facts {
		c <- fmt.Sprint("counted ", fact.Sequence)
	}
	return nil
}

func (c channel) Refused(_ context.Context, facts []Refusal) error {
	for _, fact := range facts {
		c <- "refused " + fact.RequestID
	}
	return nil
}

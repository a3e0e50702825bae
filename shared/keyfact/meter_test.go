package keyfact

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

var (
	start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	home  = netip.MustParseAddr("192.0.2.7")
)

// published collects what a meter publishes.
type published struct {
	mu   sync.Mutex
	used []contract.KeyUsed
	err  error
}

func (l *published) publish(_ context.Context, used contract.KeyUsed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.used = append(l.used, used)
	}
	return l.err
}

func key(id string) identity.Principal {
	return identity.Principal{ID: id, Organization: "org_1", Project: "prj_1"}
}

// A key is published at once when it is first used, then at most every
// ten seconds, and never without uses; counts that could not be
// published are published later, once.
func TestMeterPublishesAtIntervals(t *testing.T) {
	now, listener := start, &published{}
	m := NewMeter(func() time.Time { return now })
	look := func(want int) {
		t.Helper()
		m.publish(t.Context(), listener.publish, publishEvery)
		if len(listener.used) != want {
			t.Fatalf("at %s: published %d times, want %d", now.Sub(start), len(listener.used), want)
		}
	}
	m.Note(key("key_1"), Accepted, home, "one")
	look(1)
	now = now.Add(publishEvery - 1)
	m.Note(key("key_1"), Accepted, home, "one")
	m.Note(key("key_1"), Rejected, netip.Addr{}, "two")
	m.Note(key("key_1"), Refused, netip.Addr{}, "two")
	look(1)
	now = now.Add(1)
	listener.err = errors.New("no broker")
	look(1)
	listener.err = nil
	look(2)
	accepted := start.Add(publishEvery - 1)
	want := contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Accepted: 1, Rejected: 1, Refused: 1,
		FirstAcceptedAt: &accepted, LastUsedAt: accepted, Client: "two"}
	if got := listener.used[1]; fmt.Sprint(got) != fmt.Sprint(want) && (got.FirstAcceptedAt == nil || !got.FirstAcceptedAt.Equal(accepted)) {
		t.Errorf("published %+v, want %+v", got, want)
	}
	now = now.Add(time.Hour)
	look(2)
	if m.Keys() != 0 {
		t.Errorf("%d keys are remembered an hour later", m.Keys())
	}
	m.Note(key("key_1"), Rejected, home, "one")
	m.Flush(t.Context(), listener.publish)
	if got := listener.used[2]; got.Rejected != 1 || got.FirstAcceptedAt != nil || got.Address != "192.0.2.7" {
		t.Errorf("at the end: published %+v", got)
	}
}

// Concurrent uses are all published once; the number of keys in
// memory is bounded.
func TestMeterLosesNothingAndIsBounded(t *testing.T) {
	listener := &published{}
	m := NewMeter(time.Now)
	var all sync.WaitGroup
	done := make(chan struct{})
	publishing := make(chan struct{})
	go func() {
		defer close(publishing)
		for {
			m.Flush(t.Context(), listener.publish)
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				m.Note(key(fmt.Sprint("key_", i%7)), Outcome(i%int(outcomes)), home, "c")
			}
		})
	}
	all.Wait()
	close(done)
	<-publishing
	m.Flush(t.Context(), listener.publish)
	var sum int64
	for _, used := range listener.used {
		sum += used.Accepted + used.Rejected + used.Refused + used.Read
	}
	if sum != 8000 {
		t.Errorf("%d uses are published, want 8000", sum)
	}
	for i := range maxKeys + 10 {
		m.Note(key(fmt.Sprint("other_", i)), Accepted, home, "c")
	}
	if m.Keys() > maxKeys || m.Missed() == 0 {
		t.Errorf("%d keys are remembered, %d uses missed", m.Keys(), m.Missed())
	}
}

// Several keys are published concurrently: none waits for the answer to
// another. If all fail, nothing is lost.
func TestMeterPublishesOfKeysTogether(t *testing.T) {
	m := NewMeter(func() time.Time { return start })
	const keys = 100
	for i := range keys {
		m.Note(key(fmt.Sprint("key_", i)), Accepted, home, "c")
	}
	var here sync.WaitGroup
	here.Add(keys)
	m.Flush(t.Context(), func(context.Context, contract.KeyUsed) error {
		here.Done()
		here.Wait() // hangs if they come one by one
		return errors.New("no broker")
	})
	listener := &published{}
	m.Flush(t.Context(), listener.publish)
	if len(listener.used) != keys {
		t.Errorf("%d keys are published, want %d", len(listener.used), keys)
	}
}

// Counting costs a request almost nothing.
func TestNoteAllocatesNothing(t *testing.T) {
	m := NewMeter(func() time.Time { return start })
	who := key("key_1")
	if n := testing.AllocsPerRun(100, func() { m.Note(who, Accepted, home, "client") }); n > 1 { // 1: the id as a key of the map
		t.Errorf("%.0f allocations for a use", n)
	}
}

// A User-Agent is kept for each of many keys, so only a part of a long one.
func TestNoteTruncatesClients(t *testing.T) {
	m := NewMeter(func() time.Time { return start })
	m.Note(key("key_1"), Accepted, home, "curl "+strings.Repeat("x", 1<<20))
	s, _ := m.sum(key("key_1"), start.UnixNano())
	if kept := s.sender.Load().client; len(kept) != maxClient || !strings.HasPrefix(kept, "curl x") {
		t.Errorf("%d bytes are kept: %.10q", len(kept), kept)
	}
}

// A key whose first use is just being counted is not dropped as unused.
func TestAKeyIsKeptWhileItsFirstUseIsCounted(t *testing.T) {
	m := NewMeter(func() time.Time { return start })
	s, _ := m.sum(key("key_1"), start.UnixNano()) // as far as Note has come
	var published []contract.KeyUsed
	publish := func(_ context.Context, used contract.KeyUsed) error {
		published = append(published, used)
		return nil
	}
	m.Flush(t.Context(), publish)
	s.counts[Read].Add(1)
	if m.Flush(t.Context(), publish); len(published) != 1 || published[0].Read != 1 {
		t.Errorf("published %+v", published)
	}
}

package eventstoretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/eventstore"
)

// A Subject is a store under test, with its order of commits.
type Subject struct {
	Store   eventstore.Store[Counted]
	ReadAll func(ctx context.Context, after eventstore.Cursor, limit int) ([]eventstore.Recorded[Counted], error)
}

// A Factory makes an empty store that runs project in the transaction
// of every append.
type Factory func(t *testing.T, project func(events []eventstore.Recorded[Counted]) error) Subject

// Run runs the suite.
func Run(t *testing.T, factory Factory) {
	for name, test := range map[string]func(*testing.T, Factory){
		"an unknown stream is empty":                        unknownIsEmpty,
		"what was appended is read back in order":           readsBack,
		"an append behind or ahead of the stream fails":     refusesOtherVersions,
		"an append is all or nothing":                       appendsAllOrNothing,
		"streams of two organizations never meet":           separatesOrganizations,
		"a stream without an organization is refused":       refusesNamelessStreams,
		"of many appends at once none is lost":              losesNoAppend,
		"all events are read once, in the order of commits": readsAllOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, factory) })
	}
}

var (
	ours   = eventstore.Stream{Organization: "org_a", Name: "counter-1"}
	theirs = eventstore.Stream{Organization: "org_b", Name: "counter-1"}
)

func accept([]eventstore.Recorded[Counted]) error { return nil }

// A stream begins with its first event; reading it before is no error.
func unknownIsEmpty(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	mustHold(t, subject, ours)
}

// Versions are 1, 2, 3, …; metadata and text come back unchanged,
// with any characters.
func readsBack(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	first, second := Counted{By: 1, Note: "ä \u2028 \x00 \""}, Counted{By: 2}
	mustAppend(t, subject, ours, 0, first, second)
	mustAppend(t, subject, ours, 2, Counted{By: 3})
	for i, recorded := range mustHold(t, subject, ours, first, second, Counted{By: 3}) {
		if recorded.Version != int64(i)+1 || recorded.Stream != ours || recorded.Metadata["actor"] != "suite" {
			t.Errorf("event %d was recorded as %+v", i, recorded)
		}
	}
}

// A decision on an old state is refused; no stream can have a gap.
func refusesOtherVersions(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	mustAppend(t, subject, ours, 0, Counted{By: 1})
	for _, expected := range []int64{0, 2, 7} {
		err := subject.Store.Append(t.Context(), ours, expected, nil, Counted{By: 9})
		if !errors.Is(err, eventstore.ErrConflict) {
			t.Errorf("append at version %d to a stream at 1: got %v, want ErrConflict", expected, err)
		}
	}
	mustHold(t, subject, ours, Counted{By: 1})
}

// A failed projection rolls its events back, so that the two can't disagree.
func appendsAllOrNothing(t *testing.T, factory Factory) {
	refusal := errors.New("refused")
	subject := factory(t, func(events []eventstore.Recorded[Counted]) error {
		if events[len(events)-1].Event.By == 13 {
			return refusal
		}
		return nil
	})
	mustAppend(t, subject, ours, 0, Counted{By: 1})
	err := subject.Store.Append(t.Context(), ours, 1, nil, Counted{By: 2}, Counted{By: 13})
	if !errors.Is(err, refusal) {
		t.Fatalf("append that the projection refuses: got %v", err)
	}
	mustHold(t, subject, ours, Counted{By: 1})
	mustAppend(t, subject, ours, 1, Counted{By: 3})
	mustHold(t, subject, ours, Counted{By: 1}, Counted{By: 3})
}

// Two organizations may use the same names of streams.
func separatesOrganizations(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	mustAppend(t, subject, ours, 0, Counted{By: 1})
	mustAppend(t, subject, theirs, 0, Counted{By: 2})
	mustHold(t, subject, ours, Counted{By: 1})
	mustHold(t, subject, theirs, Counted{By: 2})
	installation := eventstore.Stream{Organization: eventstore.Installation, Name: "counter-1"}
	mustAppend(t, subject, installation, 0, Counted{By: 3})
	mustHold(t, subject, installation, Counted{By: 3})
}

// A stream without an organization could be read by all.
func refusesNamelessStreams(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	for _, stream := range []eventstore.Stream{{Name: "counter-1"}, {Organization: "org_a"}} {
		if err := subject.Store.Append(t.Context(), stream, 0, nil, Counted{By: 1}); err == nil {
			t.Errorf("append to %q succeeded", stream)
		}
		if _, err := subject.Store.Read(t.Context(), stream); err == nil {
			t.Errorf("read of %q succeeded", stream)
		}
	}
}

// Of several concurrent writers each count is kept, with retries.
func losesNoAppend(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	const writers, times = 4, 5
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range times {
				countUp(t, subject.Store, ours)
			}
		})
	}
	group.Wait()
	got, version, err := eventstore.Load[Counter](t.Context(), subject.Store, ours)
	if err != nil || got.Sum != writers*times || version != writers*times {
		t.Errorf("counter: got %+v at version %d, %v, want %d", got, version, err, writers*times)
	}
}

// A reader that follows with its cursor during writes sees every event
// exactly once, and each stream in order.
func readsAllOnce(t *testing.T, factory Factory) {
	subject := factory(t, accept)
	const writers, times = 4, 10
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			stream := eventstore.Stream{Organization: "org_a", Name: fmt.Sprintf("counter-%d", i)}
			for range times {
				countUp(t, subject.Store, stream)
			}
		})
	}
	seen := follow(t, subject, writers*times)
	group.Wait()
	for stream, versions := range seen {
		for i, version := range versions {
			if version != int64(i)+1 {
				t.Errorf("%q was read as versions %v", stream, versions)
				break
			}
		}
	}
}

// follow reads small pages until it has seen total events, and
// returns each stream's versions in order.
func follow(t *testing.T, subject Subject, total int) map[eventstore.Stream][]int64 {
	t.Helper()
	seen := map[eventstore.Stream][]int64{}
	after := eventstore.Cursor(0)
	for count := 0; count < total; {
		page, err := subject.ReadAll(t.Context(), after, 3)
		if err != nil || len(page) > 3 {
			t.Fatalf("read after %d: %d events, %v", after, len(page), err)
		}
		for _, recorded := range page {
			seen[recorded.Stream] = append(seen[recorded.Stream], recorded.Version)
			after = recorded.Cursor
		}
		count += len(page)
	}
	if page, err := subject.ReadAll(t.Context(), after, 3); err != nil || len(page) != 0 {
		t.Errorf("read after the end: %d events, %v", len(page), err)
	}
	return seen
}

// countUp counts up by one, and retries conflicts.
func countUp(t *testing.T, store eventstore.Store[Counted], stream eventstore.Stream) {
	for {
		_, version, err := eventstore.Load[Counter](t.Context(), store, stream)
		if err == nil {
			err = store.Append(t.Context(), stream, version, nil, Counted{By: 1})
		}
		if errors.Is(err, eventstore.ErrConflict) {
			continue
		}
		if err != nil {
			t.Errorf("count up %q: %v", stream, err)
		}
		return
	}
}

func mustAppend(t *testing.T, subject Subject, stream eventstore.Stream, expected int64, events ...Counted) {
	t.Helper()
	err := subject.Store.Append(t.Context(), stream, expected, eventstore.Metadata{"actor": "suite"}, events...)
	if err != nil {
		t.Fatalf("append to %q at %d: %v", stream, expected, err)
	}
}

// mustHold checks that a stream holds exactly these events.
func mustHold(t *testing.T, subject Subject, stream eventstore.Stream, want ...Counted) []eventstore.Recorded[Counted] {
	t.Helper()
	got, err := subject.Store.Read(t.Context(), stream)
	if err != nil {
		t.Fatalf("read %q: %v", stream, err)
	}
	if len(got) != len(want) {
		t.Fatalf("%q holds %d events, want %d", stream, len(got), len(want))
	}
	for i := range want {
		if got[i].Event != want[i] {
			t.Errorf("event %d of %q: got %+v, want %+v", i, stream, got[i].Event, want[i])
		}
	}
	return got
}

// Counted is the only event of the suite.
type Counted struct {
	By   int    `json:"by"`
	Note string `json:"note,omitempty"`
}

// Counter is the sum of what was counted.
type Counter struct {
	Sum   int
	Times int
}

// Apply adds an event.
func (c *Counter) Apply(event Counted) {
	c.Sum += event.By
	c.Times++
}

const countedName = "test.v1.counted"

// Codec returns the suite's codec.
func Codec() eventstore.Codec[Counted] {
	return eventstore.Codec[Counted]{Encode: encode, Decode: decode, Knows: func(name string) bool { return name == countedName }}
}

func encode(event Counted) (string, []byte, error) {
	data, err := json.Marshal(event)
	return countedName, data, err
}

func decode(name string, data []byte) (event Counted, err error) {
	if name != countedName {
		return event, fmt.Errorf("unknown event %q", name)
	}
	err = json.Unmarshal(data, &event)
	return event, err
}

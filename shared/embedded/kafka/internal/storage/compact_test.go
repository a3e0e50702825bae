package storage

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// A compaction keeps the last record of each key, and a tombstone for
// delete.retention.ms after the compaction that dropped what it deletes:
// a reader of the value comes to its end. All offsets stay.
func TestCompaction(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "state", map[string]string{settingCleanup: "compact", settingDeleteRetention: "3600000", settingSegment: "200"})
	put(t, p, "a", "1")
	put(t, p, "b", "1")
	several := []batch.Pair{pair("a", "2"), {Key: []byte("b")}, pair("c", "1")}
	if a, err := p.Append(batch.New(noon.UnixMilli(), several)); err != nil || a.Wait() != nil {
		t.Fatal(err)
	}
	put(t, p, "a", "3")
	for _, step := range []struct {
		after   time.Duration
		has     string
		restart bool
	}{
		{0, "3:b=- 4:c=1 5:a=3", false},
		{59 * time.Minute, "3:b=- 4:c=1 5:a=3", true},
		{61 * time.Minute, "4:c=1 5:a=3", false},
	} {
		if err := s.Compact(noon.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		want(t, p, step.has)
		if step.restart {
			closeStore(t, s)
			s = open(t, fsys, "/data")
			p = partition(t, s, "state")
			want(t, p, step.has)
		}
	}
	put(t, p, "d", "1")
	want(t, p, "4:c=1 5:a=3 6:d=1")
}

// What was deleted by the log's start, expired or was compacted away is
// not found by time.
func TestOffsetsByTime(t *testing.T) {
	s := open(t, faulty(t), "/data")
	p := create(t, s, "topic", map[string]string{settingSegment: "200"})
	for hour := range 6 {
		a, err := p.Append(batch.New(noon.Add(time.Duration(hour)*time.Hour).UnixMilli(), []batch.Pair{pair("k", "v"), pair("l", "w")}))
		if err != nil || a.Wait() != nil {
			t.Fatal(err)
		}
	}
	if start, err := p.DeleteBefore(3); err != nil || start != 3 {
		t.Fatalf("it starts at %d: %v", start, err)
	}
	for _, look := range []struct {
		after  time.Duration
		offset int64
	}{{-time.Hour, 3}, {time.Hour, 3}, {90 * time.Minute, 4}, {5 * time.Hour, 10}, {6 * time.Hour, -1}} {
		if offset, _, err := p.At(noon.Add(look.after).UnixMilli()); err != nil || offset != look.offset {
			t.Errorf("%s later it is offset %d, want %d: %v", look.after, offset, look.offset, err)
		}
	}
	if offset, at, err := p.Newest(); err != nil || offset != 10 || at != noon.Add(5*time.Hour).UnixMilli() {
		t.Errorf("the newest is at %d, %d: %v", offset, at, err)
	}
}

package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/testenv"
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
		testenv.Must(t, s.Compact(noon.Add(step.after)))
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

// Small batches become few, which have the same records at the same
// offsets and times, also after a start; large ones stay as they are.
func TestPack(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "logs", nil)
	large := strings.Repeat("x", 2*smallBatch)
	var expected []string
	appendOne := func(i int, value string) {
		t.Helper()
		at := noon.Add(time.Duration(i) * time.Second)
		a, err := p.Append(batch.New(at.UnixMilli(), []batch.Pair{pair(fmt.Sprint(i), value)}))
		if err != nil || a.Wait() != nil {
			t.Fatal(err)
		}
		expected = append(expected, fmt.Sprintf("%d:%d=%s", i, i, value))
	}
	for i := range 1000 {
		value := "a value that all of them have"
		if i == 500 {
			value = large
		}
		appendOne(i, value)
		if i%250 != 249 {
			continue
		}
		testenv.Must(t, Pack(s))
	}
	if size := p.Bytes(); size > int64(len(large))+15_000 {
		t.Errorf("they take %d bytes", size)
	}
	if len(p.segments) > 4 {
		t.Errorf("it has %d files", len(p.segments))
	}
	for range 2 {
		want(t, p, strings.Join(expected, " "))
		for _, i := range []int{0, 250, 500, 998} {
			if offset, at, err := p.At(noon.Add(time.Duration(i) * time.Second).UnixMilli()); offset != int64(i) || at != noon.Add(time.Duration(i)*time.Second).UnixMilli() || err != nil {
				t.Errorf("by its time, record %d is at %d of %d, %v", i, offset, at, err)
			}
		}
		closeStore(t, s)
		s = open(t, fsys, "/data")
		p = partition(t, s, "logs")
	}
}

// What a producer may send again is known after its batches were packed.
func TestRepetitionsOfPackedBatches(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "logs", map[string]string{settingSegment: "4000"})
	send := func(sequence int32) (int64, error) {
		a, err := p.Append(sequenced(t, 7, sequence, strings.Repeat("v", 50)))
		if err == nil {
			err = a.Wait()
		}
		return a.Base, err
	}
	for sequence := range int32(20) {
		if _, err := send(sequence); err != nil {
			t.Fatal(err)
		}
	}
	before := p.Bytes()
	if err := Pack(s); err != nil || p.Bytes() >= before {
		t.Fatalf("%d bytes are packed into %d: %v", before, p.Bytes(), err)
	}
	p = partition(t, open(t, fsys, "/data"), "logs")
	for sequence := int32(15); sequence < 21; sequence++ {
		if at, err := send(sequence); at != int64(sequence) || err != nil {
			t.Errorf("sequence %d is at %d, %v", sequence, at, err)
		}
	}
}

// Records that are far apart stay in files of their own: a file expires
// with its newest.
func TestPackedRecordsExpire(t *testing.T) {
	now := noon
	fsys := faulty(t)
	o := options(fsys, "/data")
	o.Clock = func() time.Time { return now }
	s, err := Open(o)
	testenv.Must(t, err)
	defer s.stop()
	p := create(t, s, "logs", map[string]string{settingSegment: "2000", settingRetention: fmt.Sprint((8 * time.Hour).Milliseconds())})
	for range 3 {
		for range 15 {
			a, err := p.Append(batch.New(now.UnixMilli(), []batch.Pair{pair("k", "a value")}))
			if err != nil || a.Wait() != nil {
				t.Fatal(err)
			}
		}
		testenv.Must(t, Pack(s))
		now = now.Add(2 * time.Hour)
	}
	now = noon.Add(9 * time.Hour)
	testenv.Must(t, s.Retain(now))
	if start, _ := p.Bounds(); start != 15 {
		t.Errorf("the log begins at %d, want at 15, the first that is not too old", start)
	}
}

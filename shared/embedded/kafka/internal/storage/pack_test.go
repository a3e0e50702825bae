package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

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
		if err := Pack(s); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	p := create(t, s, "logs", map[string]string{settingSegment: "2000", settingRetention: fmt.Sprint((8 * time.Hour).Milliseconds())})
	for range 3 {
		for range 15 {
			a, err := p.Append(batch.New(now.UnixMilli(), []batch.Pair{pair("k", "a value")}))
			if err != nil || a.Wait() != nil {
				t.Fatal(err)
			}
		}
		if err := Pack(s); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Hour)
	}
	now = noon.Add(9 * time.Hour)
	if err := s.Retain(now); err != nil {
		t.Fatal(err)
	}
	if start, _ := p.Bounds(); start != 15 {
		t.Errorf("the log begins at %d, want at 15, the first that is not too old", start)
	}
}

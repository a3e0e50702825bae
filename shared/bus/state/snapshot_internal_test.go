package state

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/testenv"
)

func aSnapshot() snapshot {
	at := time.UnixMilli(1_790_000_000_123).UTC()
	return snapshot{topic: "test.topic", id: wire.TopicID{1, 2, 3}, taken: time.UnixMilli(1_790_000_001_000), parts: []snapshotPart{
		{partition: 0, next: 1 << 40, records: []held{
			pack(bus.Record{Offset: 3, Key: []byte("a"), Value: []byte("1"), Time: at, Headers: []bus.Header{{Key: "ce_type", Value: []byte("t")}, {Key: "none", Value: nil}}}),
			pack(bus.Record{Offset: 1 << 39, Key: []byte{}, Value: []byte{}, Time: at}),
		}},
		{partition: 1, next: 7},
	}}
}

// A written snapshot is read back exactly.
func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.state")
	want := aSnapshot()
	for range 2 { // the second one replaces the first
		testenv.Must(t, want.write(path))
	}
	got, err := readSnapshot(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v (%v)", got, want, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("%d files are left, want one", len(files))
	}
}

// A file truncated or changed at any byte is refused, and nothing breaks.
func TestSnapshotIsRefusedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.state")
	testenv.Must(t, aSnapshot().write(path))
	good, err := os.ReadFile(path)
	testenv.Must(t, err)
	refuse := func(b []byte) {
		t.Helper()
		testenv.Must(t, os.WriteFile(path, b, 0o600))
		if _, err := readSnapshot(path); err == nil {
			t.Fatalf("%d bytes of %d were read without an error", len(b), len(good))
		}
	}
	for n := range good {
		refuse(good[:n])
		bad := append([]byte(nil), good...)
		bad[n] ^= 0x10
		refuse(bad)
	}
}

// A packed record unpacks to the same, also with null or empty parts.
func TestPackedRecords(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_123).UTC()
	for _, want := range []bus.Record{
		{Topic: "test.topic", Partition: 2, Offset: 1 << 39, Time: at, Key: []byte("a"), Value: []byte("1"), Headers: []bus.Header{{Key: "ce_type", Value: []byte("t")}, {Key: "none"}}},
		{Topic: "test.topic", Offset: 3, Time: at, Key: []byte{}, Value: []byte{}},
	} {
		if got := pack(want).record(want.Topic, want.Partition); !reflect.DeepEqual(got, want) {
			t.Errorf("unpacked %+v, want %+v", got, want)
		}
	}
}

// Four modules in one process need hardly more memory for a topic's
// state than one.
func TestReadersHoldTheirStateTogether(t *testing.T) {
	const records, size = 5_000, 1_000
	read := func() *Reader {
		s := NewReader(Config{Topic: "test.topic", SnapshotDir: t.TempDir(), Apply: func(bus.Record) error { return nil }}, slog.New(slog.DiscardHandler))
		s.reading.settings = broker.TopicSettings{Compacted: true, DeleteRetention: time.Hour}
		for i := range records {
			s.reading.take(s.reading.of(0), bus.Record{Offset: int64(i), Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("v", size))})
		}
		return s
	}
	before := heap()
	readers := []*Reader{read(), read(), read(), read()}
	if grown := heap() - before; grown > 2*records*size {
		t.Errorf("%d readers of %d bytes hold %d bytes", len(readers), records*size, grown)
	}
	runtime.KeepAlive(readers)
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far below the largest
}

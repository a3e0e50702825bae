package state

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

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
		s.settings = broker.TopicSettings{Compacted: true, DeleteRetention: time.Hour}
		for i := range records {
			s.take(bus.Record{Offset: int64(i), Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("v", size))})
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

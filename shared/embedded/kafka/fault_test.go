package kafka

import (
	"errors"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk/disktest"
)

// A broker starts on a full disk, serves what there is, and refuses what
// is new by an error that clients know, until there is room.
func TestFullDisk(t *testing.T) {
	dir, files := t.TempDir(), disktest.New(disk.OS{})
	b := start(t, Config{Dir: dir, files: files})
	create(t, b.Addr(), "test.full")
	create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
	produce(t, b.Addr(), "test.full", values(3)...)
	produce(t, b.Addr(), "test.state", updates(3)...)
	stop(t, b)

	files.Fail(disktest.Only("write", syscall.ENOSPC))
	b = start(t, Config{Dir: dir, files: files})
	if got := consume(t, b.Addr(), "test.full", 3); len(got) != 3 {
		t.Errorf("%d records can be read", len(got))
	}
	c := client(t, b.Addr(), kgo.DefaultProduceTopic("test.full"), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
	if err := c.ProduceSync(t.Context(), kgo.StringRecord("refused")).FirstErr(); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("a full disk is answered %v, want %v", err, kerr.KafkaStorageError)
	}
	files.Fail(nil)
	produce(t, b.Addr(), "test.full", kgo.StringRecord("3"))
	for i, r := range consume(t, b.Addr(), "test.full", 4) {
		if want := string(rune('0' + i)); string(r.Value) != want {
			t.Errorf("offset %d holds %q, want %s", r.Offset, r.Value, want)
		}
	}
	if err := b.Compact(t.Context()); err != nil {
		t.Error(err)
	}
}

package state

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
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
		if err := want.write(path); err != nil {
			t.Fatal(err)
		}
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
	if err := aSnapshot().write(path); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
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

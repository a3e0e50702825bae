package state

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unique"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A snapshot is a file of snapshotMagic, whose last byte is the
// format's version, the fields of snapshot in order, lengths as
// varints, and the SHA-256 of all that. Another version is ignored: the
// log is read.
const snapshotMagic = "BUSSTAT\x02"

// snapshot is the state of a topic up to some offsets.
type snapshot struct {
	topic string
	id    wire.TopicID
	taken time.Time // when it was known to be complete, not when it was written
	parts []snapshotPart
}

// snapshotPart is one partition of a snapshot: the newest record of
// each key below next, by offset.
type snapshotPart struct {
	partition int
	next      int64
	last      lastRead // below next
	records   []held
}

// lastRead identifies the last record that was read of a partition: a
// log that lost its end and has grown since has another one there.
type lastRead struct {
	offset int64 // -1: none was read
	sum    uint32
}

// SnapshotDir returns a service's own folder for snapshots in dir; "" for "".
func SnapshotDir(dir, service string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, service)
}

// keeps reports whether the state of a topic is kept on disk.
func (c Config) keeps(settings broker.TopicSettings) bool {
	return c.SnapshotDir != "" && settings.Compacted && settings.Memory() > 0
}

func (c Config) snapshotPath() string { return filepath.Join(c.SnapshotDir, c.Topic+".state") }

// snapshot returns the kept snapshot if it is valid; an empty one, if
// the whole log is to be read.
func (c Config) snapshot(ctx context.Context, logger *slog.Logger, settings broker.TopicSettings, logs broker.TopicLogs) snapshot {
	if !c.keeps(settings) {
		return snapshot{}
	}
	snap, err := readSnapshot(c.snapshotPath())
	if err == nil {
		err = snap.verify(c.Topic, c.Clock(), settings, logs)
	}
	if err == nil {
		err = snap.compare(ctx, logrange.Reader{Brokers: c.Brokers, Dialer: c.Dialer, Topic: c.Topic}, logs)
	}
	if err == nil {
		return snap
	}
	if !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("the snapshot of the state is of no use, reading the topic whole", "file", c.snapshotPath(), "error", err)
	}
	return snapshot{}
}

// keep writes what take returns periodically until ctx ends, and then a
// last time; an unchanged state only after rewrite.
func (c Config) keep(ctx context.Context, logger *slog.Logger, rewrite time.Duration, take func() (snap snapshot, changes int, ok bool)) {
	var last snapshot
	changes := -1
	for over := false; !over; {
		lifecycle.Pause(ctx, c.SnapshotInterval)
		over = ctx.Err() != nil
		snap, at, ok := take()
		if !ok || at == changes && snap.taken.Sub(last.taken) < rewrite {
			continue
		}
		if err := snap.write(c.snapshotPath()); err != nil {
			logger.Warn("cannot keep a snapshot of the state", "error", err)
			continue
		}
		last, changes = snap, at
	}
}

// verify returns why a snapshot can't be used. It must not be older than
// the log keeps tombstones: every later deletion must still be there.
func (snap snapshot) verify(topic string, now time.Time, settings broker.TopicSettings, logs broker.TopicLogs) error {
	age := now.Sub(snap.taken)
	switch {
	case snap.topic != topic:
		return fmt.Errorf("it is of topic %q", snap.topic)
	case snap.id != logs.ID:
		return bus.ErrTopicReplaced
	case age < 0:
		return fmt.Errorf("it is from the future, %v ahead", -age)
	case age > settings.Memory():
		return fmt.Errorf("it is %v old, deletions are in the log for %v at least, of which half is trusted", age.Round(time.Second), settings.DeleteRetention)
	case len(snap.parts) != len(logs.Bounds):
		return fmt.Errorf("it is of %d partitions, there are %d", len(snap.parts), len(logs.Bounds))
	}
	for _, part := range snap.parts {
		log, known := logs.Bounds[part.partition]
		if !known || part.next < log.Start || part.next > log.End {
			return fmt.Errorf("partition %d: %w: at %d, log from %d to %d", part.partition, bus.ErrOutsideLog, part.next, log.Start, log.End)
		}
	}
	return nil
}

// compare returns why the log is not the one that a snapshot was taken
// of. Where compaction has removed the last record, that can't be known.
func (snap snapshot) compare(ctx context.Context, log logrange.Reader, logs broker.TopicLogs) error {
	for _, part := range snap.parts {
		if part.next == logs.Bounds[part.partition].Start {
			continue // nothing was read
		}
		now := lastRead{offset: -1}
		if at := part.last.offset; at >= 0 {
			_, err := log.Read(ctx, part.partition, at, at+1, func(r bus.Record) { now = lastRead{r.Offset, r.Mark().Sum} })
			if err != nil {
				return err
			}
		}
		if now.offset < 0 || now != part.last {
			return fmt.Errorf("partition %d: %w: at %d", part.partition, bus.ErrLogDiffers, part.last.offset)
		}
	}
	return nil
}

// write replaces the file at path atomically, even in a crash.
func (snap snapshot) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFrom(path, 0o600, snap.writeTo)
}

func (snap snapshot) writeTo(file io.Writer) error {
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(file, sum), 64<<10)
	b := snap.head()
	w.Write(b) //nolint:errcheck // Flush returns the error
	for _, part := range snap.parts {
		b = binary.AppendVarint(b[:0], int64(part.partition))
		b = binary.AppendVarint(b, part.next)
		b = binary.AppendVarint(b, part.last.offset)
		b = binary.AppendVarint(b, int64(part.last.sum))
		b = binary.AppendVarint(b, int64(len(part.records)))
		w.Write(b) //nolint:errcheck // as above
		slices.SortFunc(part.records, func(a, b held) int { return cmp.Compare(a.offset, b.offset) })
		for _, h := range part.records {
			w.WriteString(h.packed.Value()) //nolint:errcheck // as above
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := file.Write(sum.Sum(nil))
	return err
}

// head returns everything before the partitions.
func (snap snapshot) head() []byte {
	b := wire.AppendNullable([]byte(snapshotMagic), snap.topic, false)
	b = append(b, snap.id[:]...)
	b = binary.AppendVarint(b, snap.taken.UnixMilli())
	return binary.AppendVarint(b, int64(len(snap.parts)))
}

// readSnapshot reads the format of write, and nothing else.
func readSnapshot(path string) (snapshot, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return snapshot{}, err
	}
	end := len(b) - sha256.Size
	if !bytes.HasPrefix(b, []byte(snapshotMagic)) || end < len(snapshotMagic) {
		return snapshot{}, errors.New("it is none, or of another version")
	}
	if sum := sha256.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return snapshot{}, errors.New("it is damaged")
	}
	r := &wire.Scanner{Rest: b[len(snapshotMagic):end]}
	snap := scanSnapshot(r)
	if r.Bad || len(r.Rest) > 0 {
		return snapshot{}, errors.New("it is damaged, and was when it was written")
	}
	return snap, nil
}

func scanSnapshot(r *wire.Scanner) snapshot {
	snap := snapshot{topic: string(r.Bytes(int(r.Varint()))), id: r.TopicID(), taken: time.UnixMilli(r.Varint())}
	for range r.Count() {
		part := snapshotPart{partition: int(r.Varint()), next: r.Varint()}
		part.last = lastRead{offset: r.Varint(), sum: uint32(r.Varint())} //nolint:gosec // as it was written
		for range r.Count() {
			part.records = append(part.records, scanHeld(r))
		}
		snap.parts = append(snap.parts, part)
	}
	return snap
}

// held is the newest record of a key, packed as in a snapshot. Modules
// of one process that follow the same topic share its memory.
type held struct {
	offset int64
	packed unique.Handle[string] // empty without snapshots
}

func pack(r bus.Record) held {
	return held{offset: r.Offset, packed: unique.Make(string(appendRecord(nil, r)))}
}

// record unpacks a record of a topic and a partition.
func (h held) record(topic string, partition int) bus.Record {
	return scanRecord(&wire.Scanner{Rest: []byte(h.packed.Value())}, topic, partition)
}

// scanHeld reads a record of a snapshot, and keeps it packed.
func scanHeld(r *wire.Scanner) held {
	rest := r.Rest
	record := scanRecord(r, "", 0)
	return held{offset: record.Offset, packed: unique.Make(string(rest[:len(rest)-len(r.Rest)]))}
}

func appendRecord(b []byte, r bus.Record) []byte {
	b = binary.AppendVarint(b, r.Offset)
	b = binary.AppendVarint(b, r.Time.UnixMilli())
	b = wire.AppendNullable(b, r.Key, false)
	b = wire.AppendNullable(b, r.Value, false)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for _, h := range r.Headers {
		b = wire.AppendNullable(b, h.Key, false)
		b = wire.AppendNullable(b, h.Value, h.Value == nil)
	}
	return b
}

func scanRecord(r *wire.Scanner, topic string, partition int) bus.Record {
	scanned := bus.Record{Topic: topic, Partition: partition, Offset: r.Varint(), Time: time.UnixMilli(r.Varint()).UTC()}
	scanned.Key, scanned.Value = r.Bytes(int(r.Varint())), r.Bytes(int(r.Varint()))
	for range r.Count() {
		scanned.Headers = append(scanned.Headers, bus.Header{Key: string(r.Bytes(int(r.Varint()))), Value: r.Bytes(int(r.Varint()))})
	}
	return scanned
}

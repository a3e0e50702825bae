package state

import (
	"encoding/binary"
	"time"
	"unique"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

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

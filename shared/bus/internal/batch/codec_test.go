package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
)

// encode returns a sealed batch as stored in a log, at base offset 0.
func encode(messages []*message.Message) []byte {
	b := New(time.Time{}, 0)
	for i, m := range messages {
		b.Add(NewOutgoing(m, nil), int64(1000+i))
	}
	b.Seal(Identity{7, 1}, 42, nil)
	return bytes.Clone(b.Buffer[4:])
}

// Encoded messages decode unchanged, also with empty, missing, long
// or repeated parts.
func TestBatchRoundTrip(t *testing.T) {
	messages := []*message.Message{
		message.NewMessage("", nil),
		message.NewMessage("id", []byte{}),
		message.NewMessage("long", bytes.Repeat([]byte("x"), 100_000)),
		message.NewMessage("named", []byte("v")),
	}
	messages[1].Metadata[bus.KeyMetadata] = ""
	messages[3].Metadata["a"] = ""
	messages[3].Metadata[strings.Repeat("n", 300)] = strings.Repeat("w", 70_000)
	records, next, err := readSet(encode(messages), 3, 0)
	if err != nil || next != 4 || len(records) != 4 {
		t.Fatalf("%d records, next %d, error %v", len(records), next, err)
	}
	for i, r := range records {
		m := messages[i]
		if !bytes.Equal(r.Value, m.Payload) || (r.Value == nil) != (m.Payload == nil) {
			t.Errorf("value %d is %d bytes, want %d", i, len(r.Value), len(m.Payload))
		}
		if _, keyed := m.Metadata[bus.KeyMetadata]; keyed != (r.Key != nil) {
			t.Errorf("key %d is %v", i, r.Key)
		}
		if r.Offset != int64(i) || r.Partition != 3 || r.Time.UnixMilli() != int64(1000+i) || r.Header("ce_id") != m.UUID {
			t.Errorf("record %d is %+v", i, r)
		}
	}
}

// Each record has its own headers, whatever the records before it had.
func TestHeadersOfEachRecord(t *testing.T) {
	var messages []*message.Message
	for i, names := range []string{"abc", "abc", "b", "bcd", "", "abcd", "cab"} {
		m := message.NewMessage(fmt.Sprint(i), nil)
		for _, name := range names {
			m.Metadata[string(name)] = fmt.Sprint(i, string(name))
		}
		messages = append(messages, m)
	}
	records, _, err := readSet(encode(messages), 0, 0)
	if err != nil || len(records) != len(messages) {
		t.Fatalf("%d records, error %v", len(records), err)
	}
	for i, r := range records {
		lookup := r.Lookup()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if want := messages[i].Metadata[name]; r.Header(name) != want || lookup(name) != want {
				t.Errorf("header %s of record %d is %q, looked up %q, want %q", name, i, r.Header(name), lookup(name), want)
			}
		}
	}
}

// readSet reads all batches of an answer.
func readSet(set []byte, partition int, offset int64) ([]bus.Record, int64, error) {
	p, err := NewDecoder("topic").Piece(set, partition, offset, math.MaxInt)
	return p.Records, p.Next, err
}

// A well compressed answer is unpacked batch by batch: only the
// requested part is in memory, and the rest can be read later.
func TestDecodeInPieces(t *testing.T) {
	var set []byte
	for range 3 {
		set = append(set, encode([]*message.Message{message.NewMessage("", make([]byte, 100_000))})...)
	}
	for i := range 2 { // their offsets are consecutive
		binary.BigEndian.PutUint64(set[(i+1)*len(set)/3:], uint64(i+1))
	}
	d, offset := NewDecoder("topic"), int64(0)
	for rest := set; rest != nil; offset++ {
		p, err := d.Piece(rest, 0, offset, 1)
		if err != nil || len(p.Records) != 1 || p.Next != offset+1 || p.Bytes < 100_000 || len(p.Rest) > len(rest)-len(set)/3 {
			t.Fatalf("from %d: %d records of %d bytes, next %d, %d bytes left, error %v", offset, len(p.Records), p.Bytes, p.Next, len(p.Rest), err)
		}
		rest = p.Rest
	}
	if offset != 3 {
		t.Errorf("read to %d, want 3", offset)
	}
}

// A reader that begins inside a batch gets the rest of it; one that
// begins after it gets nothing and continues there.
func TestDecodeFromWithin(t *testing.T) {
	set := encode([]*message.Message{message.NewMessage("0", nil), message.NewMessage("1", nil), message.NewMessage("2", nil)})
	for from, want := range map[int64]string{0: "[0 1 2]", 2: "[2]", 3: "[]"} {
		records, next, err := readSet(set, 0, from)
		var ids []string
		for _, r := range records {
			ids = append(ids, r.Header("ce_id"))
		}
		if err != nil || fmt.Sprint(ids) != want || next != 3 {
			t.Errorf("from %d: %v, next %d, error %v", from, ids, next, err)
		}
	}
}

// A damaged or truncated batch is never decoded into records.
func TestDecodeDamaged(t *testing.T) {
	set := encode([]*message.Message{message.NewMessage("id", []byte("value"))})
	for i := range set {
		damaged := bytes.Clone(set)
		damaged[i] ^= 0x10
		records, _, err := readSet(damaged, 0, 0)
		if err == nil && len(records) > 0 && i >= 16 { // offset, length and leader's epoch are outside the checksum
			t.Errorf("byte %d damaged, records %v", i, records)
		}
		if records, _, err := readSet(set[:i], 0, 0); err != nil || len(records) > 0 {
			t.Errorf("cut to %d bytes: %v, %v", i, records, err)
		}
	}
}

// No bytes of a broker make the decoder panic or read beyond them.
func FuzzDecode(f *testing.F) {
	f.Add(encode([]*message.Message{message.NewMessage("id", []byte("value"))}))
	f.Fuzz(func(t *testing.T, set []byte) {
		d := NewDecoder("topic")
		d.Piece(set, 0, 0, math.MaxInt)
		if len(set) >= batchHeader-4 { // past the checksum
			d.unroll(nil, bus.Record{}, set[batchHeader-4:], 100, 0, false)
		}
	})
}

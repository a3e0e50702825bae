package logend

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/weirlog/weir/shared/bus"
)

// A begun move is what an interrupted one left: the log's old records end at
// kept, fillers follow up to copies, and copied records from there.
type begun struct {
	kept, copies, copied int64
}

// Filled reports whether the last record of a log is empty: a move was
// interrupted after it began to fill.
func (m *Mover) Filled(ctx context.Context, partition int, end int64) (filled bool, err error) {
	reader := (&log{Mover: m}).reader()
	_, err = reader.Read(ctx, partition, end-1, end, func(r bus.Record) { filled = r.IsFiller() })
	return filled, err
}

// begun looks for an interrupted move. It fails if anything but a copy
// follows the fillers.
func (l *log) begun(ctx context.Context) (begun, error) {
	b := begun{kept: l.had.End, copies: l.had.End}
	_, err := l.reader().Read(ctx, l.partition, l.had.Start, l.had.End, b.see)
	if b.copied = min(l.had.End-b.copies, b.kept-l.had.Start); err != nil || b.copies == l.had.End {
		return b, err
	}
	original, err := l.digest(ctx, l.had.Start, l.had.Start+b.copied)
	if err != nil {
		return b, err
	}
	copied, err := l.digest(ctx, b.copies, l.had.End)
	if err == nil && original != copied {
		err = fmt.Errorf("%w: from %d on it has something else than a copy of what lies before %d", ErrWritten, b.copies, b.kept)
	}
	return b, err
}

// see notes where the fillers begin and end.
func (b *begun) see(r bus.Record) {
	switch {
	case r.IsFiller():
		b.kept = min(b.kept, r.Offset)
	case b.kept < r.Offset:
		b.copies = min(b.copies, r.Offset)
	}
}

func (l *log) digest(ctx context.Context, from, to int64) (sum [sha256.Size]byte, err error) {
	d := digest{sha256.New()}
	_, err = l.reader().Read(ctx, l.partition, from, to, d.add)
	return [sha256.Size]byte(d.Sum(nil)), err
}

// A digest hashes records without their offsets.
type digest struct{ hash.Hash }

func (d digest) add(r bus.Record) {
	d.field(binary.BigEndian.AppendUint64(nil, uint64(r.Time.UnixMilli()))) //nolint:gosec // any number
	d.field(r.Key)
	d.field(r.Value)
	for _, h := range r.Headers {
		d.field([]byte(h.Key))
		d.field(h.Value)
	}
}

func (d digest) field(b []byte) {
	d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	d.Write(b)
}

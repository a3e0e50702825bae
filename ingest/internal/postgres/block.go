package postgres

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
)

// A Block is a block of entries and whose they are.
type Block struct {
	ingest.Block
	ID           string // a UUID
	Retention    int    // for how many days it is kept
	Organization string
	Project      string
}

// receivedAt is when the latest entry of the block was received, as of now: the block lies in the partition of that day. Where that is past
// already, the clock of who accepted it was behind, or it waited in the log for longer than it is kept: it is kept from now on instead of dropped.
func (b *Block) receivedAt(now time.Time) time.Time {
	latest := b.List[0].ReceivedAt
	for i := range b.List {
		if at := b.List[i].ReceivedAt; at.After(latest) {
			latest = at
		}
	}
	if dayOf(b.Retention, latest).past(dayOf(b.Retention, now).begins) {
		latest = now
	}
	return latest.Truncate(time.Microsecond)
}

var blockColumns = []string{"organization", "project", "received_at", "block", "min_seconds", "min_nanos", "max_seconds", "max_nanos",
	"levels", "entries", "text_bytes", "words", "data", "retention"}

// Keep copies the blocks into the partitions of their days, which it creates where they are missing.
func (s *Store) Keep(ctx context.Context, tx pgx.Tx, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	now, byDay := s.clock(), map[day][]*Block{}
	for i := range blocks {
		d := dayOf(blocks[i].Retention, blocks[i].receivedAt(now))
		byDay[d] = append(byDay[d], &blocks[i])
	}
	if err := ensureDays(ctx, tx, byDay); err != nil {
		return err
	}
	for d, list := range byDay {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{d.partition()}, blockColumns, pgx.CopyFromRows(s.rows(list, now))); err != nil {
			return fmt.Errorf("cannot keep %d blocks in %q: %w", len(list), d.partition(), err)
		}
	}
	return noteReaches(ctx, tx, byDay)
}

// rows compresses the blocks, on as many processors as there are.
func (s *Store) rows(blocks []*Block, now time.Time) [][]any {
	rows := make([][]any, len(blocks))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, b := range blocks {
		workers.Go(func() error {
			rows[i] = s.row(b, now)
			return nil
		})
	}
	_ = workers.Wait() // none fails
	return rows
}

func (s *Store) row(b *Block, now time.Time) []any {
	text := b.AppendBinary(make([]byte, 0, b.Bytes+32*b.Entries))
	return []any{b.Organization, b.Project, b.receivedAt(now), b.ID, b.Min.Seconds, int32(b.Min.Nanos), b.Max.Seconds, int32(b.Max.Nanos),
		int16(b.Levels), int32(b.Entries), int32(b.Bytes), []byte(b.Words), //nolint:gosec // bounded by the size of a record
		s.encoder.EncodeAll(text, nil), int16(b.Retention)} //nolint:gosec // bounded by the contract
}

// unpack decompresses a block, into buffer as far as that goes.
func (s *Store) unpack(data, buffer []byte) ([]byte, error) {
	text, err := s.decoder.DecodeAll(data, buffer[:0])
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %d bytes: %w", len(data), err)
	}
	return text, nil
}

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

// A Block is a block of entries with its owner.
type Block struct {
	ingest.Block
	ID           string // a UUID
	Retention    int    // for how many days it is kept
	Organization string
	Project      string

	at time.Time // by which it lies in a partition, once it does
}

// receivedAt is the receipt of the block's latest entry, and so the
// partition's day. If that partition is gone, after a slow clock or a
// wait in the log, it is now: the block is kept from now on.
func (b *Block) receivedAt(now time.Time) time.Time {
	latest := b.latest()
	if dayOf(b.Retention, latest).past(dayOf(b.Retention, now).begins) {
		latest = now
	}
	return latest.Truncate(time.Microsecond)
}

// latest is when the last of its entries was received.
func (b *Block) latest() time.Time {
	latest := b.List[0].ReceivedAt
	for i := range b.List {
		if at := b.List[i].ReceivedAt; at.After(latest) {
			latest = at
		}
	}
	return latest.Truncate(time.Microsecond)
}

var blockColumns = []string{"organization", "project", "received_at", "block", "min_seconds", "min_nanos", "max_seconds", "max_nanos",
	"levels", "entries", "text_bytes", "words", "data", "retention", "environments"}

// Keep copies the blocks into the partitions of their days,
// which it creates where they are missing.
func (s *Store) Keep(ctx context.Context, tx pgx.Tx, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	now, byDay := s.clock(), map[day][]*Block{}
	for i := range blocks {
		b := &blocks[i]
		b.at = b.receivedAt(now)
		d := dayOf(b.Retention, b.at)
		byDay[d] = append(byDay[d], b)
	}
	if err := ensureDays(ctx, tx, byDay); err != nil {
		return err
	}
	for d, list := range byDay {
		if err := s.copy(ctx, tx, d, list); err != nil {
			return err
		}
	}
	if err := saveReaches(ctx, tx, byDay); err != nil {
		return err
	}
	s.metrics.kept(blocks)
	return saveSmall(ctx, tx, byDay, now)
}

// copy writes blocks of one day.
func (s *Store) copy(ctx context.Context, tx pgx.Tx, d day, blocks []*Block) error {
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{d.partition()}, blockColumns, pgx.CopyFromRows(s.rows(blocks))); err != nil {
		return fmt.Errorf("cannot keep %d blocks in %q: %w", len(blocks), d.partition(), err)
	}
	return nil
}

// rows compresses the blocks, on as many processors as there are.
func (s *Store) rows(blocks []*Block) [][]any {
	rows := make([][]any, len(blocks))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, b := range blocks {
		workers.Go(func() error {
			rows[i] = s.row(b)
			return nil
		})
	}
	_ = workers.Wait() // none fails
	return rows
}

func (s *Store) row(b *Block) []any {
	text := b.AppendBinary(make([]byte, 0, b.Bytes+32*b.Entries))
	return []any{b.Organization, b.Project, b.at, b.ID, b.Min.Seconds, int32(b.Min.Nanos), b.Max.Seconds, int32(b.Max.Nanos),
		int16(b.Levels), int32(b.Entries), int32(b.Bytes), []byte(b.Words), //nolint:gosec // bounded by the size of a record
		s.codec.Pack(text), int16(b.Retention), int64(b.Environments)} //nolint:gosec // bounded by the contract; 64 bits either way
}

// unpack decompresses a block, into buffer as far as that goes.
func (s *Store) unpack(data, buffer []byte) ([]byte, error) {
	text, err := s.codec.Unpack(data, buffer)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %d bytes: %w", len(data), err)
	}
	return text, nil
}

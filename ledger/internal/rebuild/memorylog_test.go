package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A memoryLog is a log of charges, in the order of their appending.
type memoryLog struct {
	charges []ledger.Charge
	first   contract.Positions // offsets before are lost

	target   *pgxpool.Pool
	services *services.Services
	applied  contract.Positions
	now      time.Time
}

var errLost = errors.New("the log has lost its beginning")

func (l *memoryLog) clock() time.Time { return l.now }

// append appends a charge to a partition and returns it with its place.
func (l *memoryLog) append(partition int, c ledger.Charge) ledger.Charge {
	c.Cause.Partition, c.Cause.Offset = partition, l.end()[partition]
	c.Cause.Batch = fmt.Sprintf("batch%d", len(l.charges))
	c.Cause.Event = c.Cause.Batch + "/1"
	l.charges = append(l.charges, c)
	return c
}

func (l *memoryLog) end() contract.Positions {
	end := contract.Positions{}
	for _, c := range l.charges {
		end[c.Cause.Partition] = c.Cause.Offset + 1
	}
	return end
}

// cut loses what is before the middle one of checkpoints, if that has
// anything before it.
func (l *memoryLog) cut(checkpoints []ledger.Checkpoint) bool {
	if len(checkpoints) == 0 {
		return false
	}
	at := contract.Positions(checkpoints[len(checkpoints)/2].Positions)
	for partition, next := range at {
		if next > 0 {
			l.first[partition] = next
		}
	}
	return len(l.first) > 0
}

// Open implements rebuild.Log.
func (l *memoryLog) Open(_ context.Context, _ [16]byte, from, _ contract.Positions) error {
	for partition, first := range l.first {
		if from[partition] < first {
			return errLost
		}
	}
	l.applied, l.now = maps.Clone(from), time.Time{}
	if l.applied == nil {
		l.applied = contract.Positions{}
	}
	return nil
}

// Recall implements rebuild.Log: there are no copies.
func (l *memoryLog) Recall(context.Context, contract.Positions) error { return nil }

// Logs implements rebuild.Log. It books one charge after the other.
func (l *memoryLog) Logs(ctx context.Context, through contract.Positions) error {
	for _, c := range l.charges {
		partition, offset := c.Cause.Partition, c.Cause.Offset
		if offset < l.applied[partition] || offset >= through[partition] {
			continue
		}
		l.now = l.now.Add(time.Microsecond)
		if c.Cause.At.After(l.now) {
			l.now = c.Cause.At
		}
		err := pg.InTxAsSystem(ctx, l.target, func(tx pgx.Tx) error { return ledgertest.Apply(ctx, tx, l.services, l.now, []ledger.Charge{c}) })
		if err != nil {
			return err
		}
		l.applied[partition] = offset + 1
	}
	return nil
}

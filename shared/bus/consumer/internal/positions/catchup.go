package positions

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// A CatchUp moves a lane's position in one partition, under the
// partition's epoch. It deletes the row of a lane that has caught up.
type CatchUp struct {
	Store    *Store
	From, To lanes.Backlog
	Epoch    int64
}

func (c *CatchUp) statement() string {
	if c.To.Over() {
		return finishBacklog
	}
	return moveBacklog
}

func (c *CatchUp) args() []any {
	args := append(c.Store.keyOf(c.From.Key), c.From.Next)
	if !c.To.Over() {
		args = append(args, c.To.Next, c.To.Records, c.To.Bytes, c.To.Since)
	}
	return args
}

// Move locks the partition's row and moves the lane's. It refuses, with
// bus.ErrFenced, a fenced member and records applied before.
func (c *CatchUp) Move(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	batch.Queue(setIdleTimeout, c.Store.idleTimeout())
	batch.Queue(asSystem)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := c.Store.Own(ctx, tx, c.From.Partition, c.Epoch); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, c.statement(), c.args()...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: lane %q in partition %d", bus.ErrFenced, c.From.Lane, c.From.Partition)
	}
	if err == nil {
		err = AsNobody(ctx, tx)
	}
	return err
}

// Moved reports whether the lane is at its goal, and the partition
// still the member's.
func (c *CatchUp) Moved(ctx context.Context) (moved bool, err error) {
	err = c.Store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := c.Store.Own(ctx, tx, c.From.Partition, c.Epoch); err != nil {
			return err
		}
		next := int64(-1)
		err := tx.QueryRow(ctx, `SELECT next FROM bus_deferred`+ofBacklog, c.Store.keyOf(c.From.Key)...).Scan(&next)
		if errors.Is(err, pgx.ErrNoRows) {
			moved, err = c.To.Over(), nil
			return err
		}
		moved = !c.To.Over() && next == c.To.Next
		return err
	})
	return moved, err
}

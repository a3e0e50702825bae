package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Who merges and unmerges without a pause does not keep errors from being
// counted: a transaction starts over once, then the merges wait for it.
func TestMergesDoNotStopTheCount(t *testing.T) {
	a := newWorld(t)
	kinds := make([]int, 100)
	for kind := range kinds {
		kinds[kind] = kind
	}
	a.come(kinds...)
	var ids []string
	err := pg.InTxAsSystem(t.Context(), a.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT id FROM error_groups ORDER BY id`)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for at := 0; ; at = (at + 2) % len(ids) {
			wanted := groups.MergeRequest{Into: ids[at], Groups: ids[at+1 : at+2]}
			_, err := a.Merges.Merge(ctx, a.request(), wanted)
			if err == nil {
				_, err = a.Merges.Unmerge(ctx, a.request(), wanted)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	counted, over := 0, 0
	for counted < 15 {
		switch err := a.apply(t.Context(), a.failures(kinds...)...); {
		case err == nil:
			counted++
		case errors.Is(err, postgres.ErrMoved):
			over++
		default:
			t.Fatal(err)
		}
		if over > 1 {
			t.Fatalf("%d transactions started over, and %d did not", over, counted)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

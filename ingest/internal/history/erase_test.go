package history_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// erase makes a step in each table; erasure.ErrNotYet: one waits.
func (r *rig) erase(mover *history.Mover, of erasure.Deletion) error {
	for _, table := range append(postgres.Erasable(nil), mover.Erasable()) {
		err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
			_, _, err := table.Erase(r.t.Context(), tx, of, "", 1000)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A deleted project is erased in ClickHouse too, also what was on its way there.
func TestDeletedProjectsAreErased(t *testing.T) {
	r := newRig(t)
	r.keepSome(12)
	mover := r.mover(r.rows)
	testenv.Must(t, mover.RunOnce(t.Context()))
	r.keepSome(12)
	proxy, rows := r.between()
	proxy.on("SELECT block", lost)
	if _, err := r.mover(rows).Step(t.Context()); err == nil {
		t.Fatal("the move was not cut")
	}
	of := erasure.Deletion{Organization: "org_1", Project: "prj_1"}
	testenv.Must(t, pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		return erasure.Begin(t.Context(), tx, of, time.Now(), time.Now().Add(time.Hour))
	}))
	if err := r.erase(mover, of); !errors.Is(err, erasure.ErrNotYet) {
		t.Errorf("%v, want that it waits for the move", err)
	}
	r.expire()
	testenv.Must(t, mover.RunOnce(t.Context()))
	testenv.Eventually(t, func() error { return r.erase(mover, of) })
	r.keepSome(3)
	testenv.Must(t, mover.RunOnce(t.Context())) // what comes late is not moved
	r.all = slices.DeleteFunc(r.all, func(f ingest.Found) bool { return f.Project == "prj_1" })
	if _, left := r.left(); left != int64(len(r.all)) {
		t.Errorf("ClickHouse has %d rows, want %d", left, len(r.all))
	}
	if got := r.pageThrough(ingest.Search{Limit: 1000, Hidden: map[string]bool{"prj_1": true}}); len(got) != len(r.all) {
		t.Errorf("found %d entries, want %d", len(got), len(r.all))
	}
}

// Days that are past their retention go.
func TestDaysGoPastTheirRetention(t *testing.T) {
	r := newRig(t)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for i, age := range []int{0, 7, 9, 30} {
		batch := &clickhouse.Batch{Move: int64(i), Retention: 7, Day: today.AddDate(0, 0, -age), Token: today.AddDate(0, 0, -age).String(), Deadline: time.Now().Add(time.Minute)}
		batch.Add("org_1", "prj_1", [16]byte{}, []ingest.Stored{r.entry(1, "")})
		testenv.Must(t, r.rows.Insert(t.Context(), batch))
	}
	testenv.Eventually(t, func() error {
		r.ask("*", `OPTIMIZE TABLE entries FINAL`)
		if left := r.ask("*", `SELECT count() FROM entries`); left != "2" {
			return errors.New(left + " days are left, want those of today and of a week ago")
		}
		return nil
	})
}

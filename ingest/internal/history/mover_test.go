package history_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// What moves is found once: before, between moves, and after all.
func TestAHistoryMoves(t *testing.T) {
	r := newRig(t)
	r.keepSome(60)
	r.isWhole()
	mover := r.mover(r.rows)
	moved, err := mover.Step(t.Context())
	testenv.Must(t, err)
	if !moved {
		t.Fatal("nothing moved")
	}
	r.isWhole()
	r.keepSome(5)
	testenv.Must(t, mover.RunOnce(t.Context()))
	r.isAway()
}

// Where no block is left, searches look no more, until there is one again.
func TestEmptyDaysAreForgotten(t *testing.T) {
	r := newRig(t)
	yesterday := noon
	noon = noon.AddDate(0, 0, -3)
	defer func() { noon = yesterday }()
	r.keepSome(5)
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	if days := r.days(); days != 0 {
		t.Errorf("%d rows say where blocks lie, but there are none", days)
	}
	r.isWhole()
	r.keepSome(2)
	if days := r.days(); days == 0 {
		t.Error("nothing says where the blocks lie")
	}
	r.isWhole()
}

func (r *rig) days() (days int) {
	r.t.Helper()
	testenv.Must(r.t, pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(r.t.Context(), `SELECT count(*) FROM block_days`).Scan(&days)
	}))
	return days
}

// isAway checks that all is in ClickHouse, once.
func (r *rig) isAway() {
	r.t.Helper()
	r.isWhole()
	if blocks, rows := r.left(); blocks != 0 || rows != int64(len(r.all)) {
		r.t.Errorf("%d blocks are left, ClickHouse has %d rows of %d", blocks, rows, len(r.all))
	}
}

// A process may be killed at each step of a move, with more blocks arriving after
// that: another ends what it began, and each entry is there once all the time.
func TestKilledMoves(t *testing.T) {
	for name, kill := range map[string]func(b *between, r *rig, mover *history.Mover){
		"after the claim": func(_ *between, r *rig, _ *history.Mover) {
			move, err := r.moves().Claim(t.Context(), time.Now())
			if move == nil || err != nil {
				t.Fatalf("no move, %v", err)
			}
		},
		"before the insert arrives": func(b *between, _ *rig, _ *history.Mover) { b.on("INSERT", lost) },
		"before its answer":         func(b *between, _ *rig, _ *history.Mover) { b.on("INSERT", unanswered) },
		"before it asks":            func(b *between, _ *rig, _ *history.Mover) { b.on("SELECT block", lost) },
		"before it deletes":         func(b *between, _ *rig, _ *history.Mover) { b.on("SELECT block", unanswered) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.keepSome(12)
			proxy, rows := r.between()
			killed := r.mover(rows)
			if kill(proxy, r, killed); name != "after the claim" {
				if _, err := killed.Step(t.Context()); err == nil {
					t.Fatal("the move was not cut")
				}
			}
			r.keepSome(7)
			r.isWhole()
			other := r.mover(r.rows)
			testenv.Must(t, other.RunOnce(t.Context()))
			r.isWhole()
			if blocks, _ := r.left(); blocks == 0 {
				t.Error("the blocks of the killed process were moved before its lease ended")
			}
			r.expire()
			testenv.Must(t, other.RunOnce(t.Context()))
			r.isAway()
		})
	}
}

// Two movers share the work, and pages that are read meanwhile have each entry once.
func TestMoversShareTheWork(t *testing.T) {
	r := newRig(t)
	r.keepSome(80)
	want := filter(r.all, ingest.Search{})
	var movers sync.WaitGroup
	for range 2 {
		mover := r.mover(r.rows)
		movers.Go(func() {
			for moved := true; moved; {
				var err error
				if moved, err = mover.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		if found := r.pageThrough(ingest.Search{Limit: 50}); strings.Join(found, "\n") != strings.Join(want, "\n") {
			t.Errorf("found %d entries, want %d, each once", len(found), len(want))
		}
		counted, err := r.store().Count(t.Context(), "org_1", ingest.Count{}, 1)
		if err != nil || counted.Levels.Sum() != int64(len(want)) {
			t.Errorf("counted %d entries, want %d, %v", counted.Levels.Sum(), len(want), err)
		}
	}
	movers.Wait()
	r.isAway()
}

// A process that wakes up after its lease inserts nothing twice: the token is known.
func TestAZombieInsertsNothingTwice(t *testing.T) {
	r := newRig(t)
	r.keepSome(10)
	proxy, rows := r.between()
	proxy.on("INSERT", held)
	ended := make(chan error)
	go func() {
		_, err := r.mover(rows).Step(t.Context())
		ended <- err
	}()
	<-proxy.held
	r.expire()
	other := r.mover(r.rows)
	testenv.Must(t, other.RunOnce(t.Context()))
	r.keepSome(3)
	testenv.Must(t, other.RunOnce(t.Context()))
	close(proxy.release)
	if err := <-ended; !errors.Is(err, postgres.ErrMoveLost) {
		t.Errorf("%v, want that the move is lost", err)
	}
	r.isAway()
}

// Where the token is forgotten, the deadline of its insert still holds.
func TestALateInsertIsRefused(t *testing.T) {
	r := newRig(t)
	batch := &clickhouse.Batch{Move: 1, Retention: 30, Day: noon.Truncate(24 * time.Hour), Token: "forgotten", Deadline: time.Now().Add(-time.Minute)}
	batch.Add("org_1", "prj_1", [16]byte{1}, []ingest.Stored{r.entry(1, "")})
	err := r.rows.Insert(t.Context(), batch)
	var refused *clickhouse.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "in_time") {
		t.Errorf("%v, want that the constraint is violated", err)
	}
	if _, rows := r.left(); rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

// What is there in part, which ClickHouse does not promise to prevent, is deleted and inserted again.
func TestAPartialMoveIsRepaired(t *testing.T) {
	r := newRig(t)
	r.keepSome(10)
	proxy, rows := r.between()
	proxy.on("SELECT block", lost)
	if _, err := r.mover(rows).Step(t.Context()); err == nil {
		t.Fatal("the move was not cut")
	}
	r.ask("*", `DELETE FROM entries WHERE number % 2 = 0`)
	r.isWhole()
	r.expire()
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	r.isAway()
}

// A history comes back: killed on the way, and while it is read.
func TestAHistoryComesBack(t *testing.T) {
	r := newRig(t)
	r.keepSome(70)
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	r.isAway()
	testenv.Must(t, r.moves().SetTarget(t.Context(), history.PostgreSQL))
	r.keepSome(3)
	proxy, rows := r.between()
	for _, fault := range []fault{lost, unanswered} {
		proxy.on("DELETE", fault)
		if _, err := r.mover(rows).Step(t.Context()); err == nil {
			t.Fatal("the move was not cut")
		}
		r.isWhole()
	}
	for moved := true; moved; {
		var err error
		moved, err = r.mover(r.rows).Step(t.Context())
		testenv.Must(t, err)
	}
	r.isWhole()
	r.expire()
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	r.isWhole()
	if _, rows := r.left(); rows != 0 {
		t.Errorf("ClickHouse still has %d rows", rows)
	}
	if last, emptied, err := r.moves().Last(t.Context()); last != emptied || err != nil {
		t.Errorf("emptied up to %d of %d moves, %v", emptied, last, err)
	}
	testenv.Must(t, r.moves().SetTarget(t.Context(), history.ClickHouse))
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	r.isAway()
}

// A database that was restored from a backup knows fewer moves than ClickHouse has: those
// do not count, and nothing moves, since their numbers would come again.
func TestARestoredDatabaseMovesNothing(t *testing.T) {
	r := newRig(t)
	r.keepSome(40)
	mover := r.mover(r.rows)
	if _, err := mover.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	batch := &clickhouse.Batch{Move: 99, Retention: 30, Day: noon.Truncate(24 * time.Hour), Token: "later", Deadline: time.Now().Add(time.Minute)}
	batch.Add("org_1", "prj_1", [16]byte{1}, []ingest.Stored{r.entry(1, "")})
	testenv.Must(t, r.rows.Insert(t.Context(), batch))
	r.isWhole()
	if _, err := r.mover(r.rows).Step(t.Context()); err == nil || !strings.Contains(err.Error(), "PostgreSQL knows 1") {
		t.Errorf("%v, want that it refuses", err)
	}
}

// While ClickHouse is away, entries are kept, and searches say that they can't see all.
func TestWithoutClickHouse(t *testing.T) {
	r := newRig(t)
	r.keepSome(10)
	proxy, rows := r.between()
	mover := r.mover(rows)
	testenv.Must(t, mover.RunOnce(t.Context()))
	proxy.on("", down)
	r.keepSome(3)
	if err := mover.RunOnce(t.Context()); err == nil || mover.Working() {
		t.Errorf("%v, want that it can't move", err)
	}
	store := &history.Store{Blocks: r.blocks(), Rows: rows, Clock: time.Now, Logger: testenv.Logger(t)}
	for name, ask := range map[string]func() error{
		"search": func() error { _, err := store.Search(t.Context(), "org_1", ingest.Search{Limit: 1}); return err },
		"count":  func() error { _, err := store.Count(t.Context(), "org_1", ingest.Count{}, 1); return err },
	} {
		var problem *httpapi.Problem
		if err := ask(); !errors.As(err, &problem) || problem.Code != httpapi.CodeUnavailable {
			t.Errorf("%s: %v, want that it is unavailable", name, err)
		}
	}
	proxy.heal()
	r.expire()
	testenv.Must(t, mover.RunOnce(t.Context()))
	r.isAway()
}

package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

const aDay = 24 * time.Hour

// seenAt is an error that is accepted when it happens.
func seenAt(typ string, after time.Duration) grouping.Occurrence {
	o := seen(typ, after)
	o.Accepted = o.At
	return o
}

// archiveAfter has quiet groups of the shop archived.
func archiveAfter(t testing.TB, pool *pgxpool.Pool, days int) {
	t.Helper()
	asSystem(t, pool, func(tx pgx.Tx) error {
		return postgres.SaveSetting(t.Context(), tx, "acme", "shop", postgres.Setting{Since: noon, Paths: grouping.DefaultPaths(), ArchiveDays: days, By: "mem_1"})
	})
}

// archive archives what is quiet some time after noon, and returns how many
// groups that are, and the longest that others wait.
func archive(t testing.TB, pool *pgxpool.Pool, after time.Duration) (archived int, longest time.Duration) {
	t.Helper()
	var projects []postgres.Archiving
	asSystem(t, pool, func(tx pgx.Tx) (err error) {
		projects, err = postgres.FindArchiving(t.Context(), tx)
		return err
	})
	for _, of := range projects {
		for last := (postgres.GroupCursor{}); ; {
			began := time.Now()
			err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) (err error) {
				var changed []postgres.Change
				if changed, last, err = postgres.ArchiveQuiet(t.Context(), tx, of, last, noon.Add(after)); err != nil {
					return err
				}
				archived += len(changed)
				return bus.Announce(t.Context(), tx, changed)
			})
			if err != nil {
				t.Error(err)
				return archived, longest
			}
			if longest = max(longest, time.Since(began)); last == (postgres.GroupCursor{}) {
				break
			}
		}
	}
	return archived, longest
}

// A group without an error for as long as the project has set is archived, and
// any new error opens it again. Both are told, with a reason.
func TestArchive(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seenAt("AlphaError", 0))
	if n, _ := archive(t, pool, 100*aDay); n != 0 {
		t.Errorf("%d groups are archived of a project that has set nothing", n)
	}
	archiveAfter(t, pool, 30)
	if n, _ := archive(t, pool, 30*aDay); n != 0 {
		t.Errorf("%d groups are archived before their time", n)
	}
	if n, _ := archive(t, pool, 31*aDay); n != 1 || only(t, pool).Status != grouping.Archived {
		t.Errorf("%d groups are archived: %+v", n, only(t, pool))
	}
	if n, _ := archive(t, pool, 60*aDay); n != 0 {
		t.Errorf("%d groups are archived again", n)
	}
	mustApply(t, pool, seen("AlphaError", 0)) // the same again, as when the log is read again
	if g := only(t, pool); g.Status != grouping.Archived {
		t.Errorf("an error that it had makes it %+v", g)
	}
	late := seen("AlphaError", -time.Hour)
	late.Accepted = noon.Add(40 * aDay)
	mustApply(t, pool, late)
	g := only(t, pool)
	if g.Status != grouping.Unresolved || g.State.Regressed || g.Version != 2 {
		t.Errorf("an error that came late makes it %+v", g)
	}
	facts := announced(t, pool)
	if len(facts) != 2 || facts[0].Status != "archived" || facts[0].Cause != "It had no error for 30 days." || facts[1].Before != "archived" || facts[1].Cause != "It happened in prod after it was archived." {
		t.Errorf("told: %+v", facts)
	}
	if n, _ := archive(t, pool, 61*aDay); n != 0 { // one was accepted 21 days ago, however old
		t.Errorf("%d groups are archived although errors come", n)
	}
	if n, _ := archive(t, pool, 71*aDay+time.Hour); n != 1 {
		t.Errorf("%d groups are archived once none comes", n)
	}
}

// Old logs that are sent now don't open and archive their groups in turn.
func TestArchiveOfOldLogs(t *testing.T) {
	pool := open(t)
	archiveAfter(t, pool, 1)
	for i := range 5 {
		o := seen("AlphaError", time.Duration(i)*time.Minute)
		o.Accepted = noon.Add(300*aDay + time.Duration(i)*time.Minute)
		mustApply(t, pool, o)
		archive(t, pool, 300*aDay+time.Duration(i)*time.Minute)
	}
	if g := only(t, pool); g.Version != 0 || g.Status != grouping.Unresolved {
		t.Errorf("it is %+v", g)
	}
}

// Merged groups are archived as one, by the last error of all.
func TestArchiveOfMerged(t *testing.T) {
	pool := open(t)
	archiveAfter(t, pool, 1)
	mustApply(t, pool, seenAt("AlphaError", 0), seenAt("BetaError", 0))
	var ids []string
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		ids = append(ids, g.ID)
	}
	merge(t, pool, time.Hour, ids...)
	mustApply(t, pool, seenAt("BetaError", 5*aDay))
	if n, _ := archive(t, pool, 5*aDay+time.Hour); n != 0 {
		t.Errorf("%d are archived", n)
	}
	if n, _ := archive(t, pool, 7*aDay); n != 1 || only(t, pool).Status != grouping.Archived {
		t.Errorf("%d are archived: %+v", n, only(t, pool))
	}
	mustApply(t, pool, seenAt("BetaError", 8*aDay))
	if g := only(t, pool); g.Status != grouping.Unresolved {
		t.Errorf("an error of a member makes it %+v", g)
	}
}

// A group that is rebuilt from the log and its decisions stays archived, or open.
func TestRebuildArchived(t *testing.T) {
	for _, again := range []bool{false, true} {
		pool := open(t)
		archiveAfter(t, pool, 1)
		log := []grouping.Occurrence{seenAt("AlphaError", 0), seenAt("AlphaError", time.Hour)}
		mustApply(t, pool, log...)
		archive(t, pool, 3*aDay)
		if again {
			log = append(log, seenAt("AlphaError", 4*aDay))
			mustApply(t, pool, log[2])
		}
		want := only(t, pool)
		asSystem(t, pool, func(tx pgx.Tx) error {
			for _, table := range []string{"error_groups", "group_hashes", "occurrences", "group_days"} {
				if _, err := tx.Exec(t.Context(), `DELETE FROM `+table); err != nil {
					return err
				}
			}
			return nil
		})
		for _, o := range log {
			mustApply(t, pool, o)
		}
		if got := only(t, pool); got.Status != want.Status || got.Version != want.Version || !got.State.Seen.Equal(want.State.Seen) {
			t.Errorf("it is %+v, and was %+v", got, want)
		}
	}
}

// Two replicas archive ten thousand groups beside errors of them; each is
// archived once, and nobody waits long.
func TestArchiveMany(t *testing.T) {
	pool := open(t)
	archiveAfter(t, pool, 1)
	n := testenv.Rounds(t, 1000, 10_000)
	var all []grouping.Occurrence
	for i := range n {
		o := seenAt("AlphaError", time.Duration(i)*time.Millisecond)
		o.Error.Type = "Error" + letters(i)
		if all = append(all, o); len(all) == 500 || i == n-1 {
			mustApply(t, pool, all...)
			all = nil
		}
	}
	var archived [2]int
	var longest [2]time.Duration
	var replicas sync.WaitGroup
	for i := range archived {
		replicas.Go(func() { archived[i], longest[i] = archive(t, pool, 3*aDay) })
	}
	replicas.Go(func() {
		for i := range 20 {
			o := seenAt("AlphaError", 3*aDay+time.Duration(i)*time.Second)
			o.Error.Type = "Error" + letters(i*n/20)
			mustApply(t, pool, o)
		}
	})
	replicas.Wait()
	t.Logf("%v groups, each transaction at most %v", archived, longest)
	left := len(list(t, pool, "acme", postgres.GroupQuery{Status: grouping.Unresolved, Limit: n}))
	opened := 0
	for _, fact := range announced(t, pool) {
		if fact.Before == "archived" {
			opened++
		}
	}
	if archived[0]+archived[1]+left-opened != n {
		t.Errorf("%v archived, %d open, %d opened again, of %d", archived, left, opened, n)
	}
}

func letters(n int) string {
	return fmt.Sprintf("%c%c%c%c", 'A'+n/1000%10, 'a'+n/100%10, 'a'+n/10%10, 'a'+n%10)
}

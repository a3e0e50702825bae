package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

// at is an error of a type that is accepted when it happens.
func at(typ string, when time.Time) grouping.Occurrence {
	o := seen(typ, 0)
	o.At, o.Accepted, o.Expires = when, when, grouping.Expiry(when, 365)
	return o
}

// A group that begins to spike says so once, in whatever transactions the errors come,
// and when they are read again after their group was lost.
func TestSpikes(t *testing.T) {
	spike := noon.AddDate(0, 0, 3)
	var log []grouping.Occurrence
	for hour := range 24 * 3 {
		for range 2 {
			log = append(log, at("Burst", noon.Add(time.Duration(hour)*time.Hour)), at("Steady", noon.Add(time.Duration(hour)*time.Hour)))
		}
	}
	for i := range 200 {
		log = append(log, at("Burst", spike.Add(time.Duration(i)*time.Minute)))
		late := at("Steady", spike.Add(time.Duration(i)*time.Minute))
		late.At = noon.Add(-10 * time.Hour) // a backlog is no spike of its time, nor of now
		log = append(log, late)
	}
	for _, size := range []int{7, 50, len(log)} {
		pool := open(t)
		for range 2 {
			for from := 0; from < len(log); from += size {
				mustApply(t, pool, log[from:min(from+size, len(log))]...)
			}
			facts := announced(t, pool)
			if len(facts) != 1 || facts[0].Type != "Burst" || !facts[0].Hour.Equal(spike) || facts[0].Count < grouping.MinSpike || facts[0].Expected != 2 {
				t.Fatalf("in parts of %d: announced %+v", size, facts)
			}
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `WITH g AS (DELETE FROM error_groups), o AS (DELETE FROM occurrences), d AS (DELETE FROM group_days) DELETE FROM group_hashes`)
				return err
			})
		}
	}
}

// A spike of a group that is merged into another is one of that other, and so is
// the next: they are one spike.
func TestSpikeOfMerged(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, at("A", noon), at("B", noon))
	var ids []string
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		ids = append(ids, g.ID)
	}
	merge(t, pool, 0, ids...)
	for _, typ := range []string{"A", "B"} {
		var burst []grouping.Occurrence
		for i := range 30 {
			burst = append(burst, at(typ, noon.Add(24*time.Hour+time.Duration(i)*time.Second)))
		}
		mustApply(t, pool, burst...)
	}
	facts := slices.DeleteFunc(announced(t, pool), func(f contract.ErrorGroupChanged) bool { return f.Hour.IsZero() })
	if head := only(t, pool); len(facts) != 1 || facts[0].Group != head.ID || head.State.Spike.Count != 30 {
		t.Errorf("announced %+v, the head is %+v", facts, head)
	}
}

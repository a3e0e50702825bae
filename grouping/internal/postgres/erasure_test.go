package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
)

// Of a deleted project no decision, release or answer is left, and those
// of others stay.
func TestDecisionsAreErased(t *testing.T) {
	pool := open(t)
	other := in("prod", "2.0", 0)
	other.Project = "lair"
	mustApply(t, pool, in("prod", "1.0", 0), other)
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Resolved, Note: "mended"}, g.ID)
	}
	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO answers SELECT 'acme', project::bytea, '', jsonb_build_object('project', project), now()
			FROM unnest(ARRAY['shop', 'lair']) AS project`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), `INSERT INTO group_splits SELECT 'acme', project, decode(repeat('00', 16), 'hex'), now(), 'none', 'none'
			FROM unnest(ARRAY['shop', 'lair']) AS project`)
		return err
	})
	left := func() (counts []int) {
		asSystem(t, pool, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT ARRAY[(SELECT count(*) FROM events), (SELECT count(*) FROM releases), (SELECT count(*) FROM answers),
				(SELECT count(*) FROM facts), (SELECT count(*) FROM error_groups), (SELECT count(*) FROM group_splits)]`).Scan(&counts)
		})
		return counts
	}
	erase := func(project string) {
		for _, table := range postgres.Erasable() {
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, _, err := table.Erase(t.Context(), tx, erasure.Deletion{Organization: "acme", Project: project}, "", 1000)
				return err
			})
		}
	}
	if counts := left(); !slices.Equal(counts, []int{4, 2, 2, 6, 2, 2}) {
		t.Fatalf("before: %v", counts)
	}
	if erase("shop"); !slices.Equal(left(), []int{2, 1, 1, 3, 1, 1}) {
		t.Errorf("without the project: %v", left())
	}
	if erase(""); !slices.Equal(left(), []int{0, 0, 0, 0, 0, 0}) {
		t.Errorf("without the organization: %v", left())
	}
}

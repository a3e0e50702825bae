package postgres

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Former versions are computed only for projects that still have
// groups of them, in any organization, and only from the oldest on.
func TestOldestVersions(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	of := func(organization, project string) *grouping.Count {
		return &grouping.Count{Organization: organization, Project: project}
	}
	counts := []*grouping.Count{of("acme", "old"), of("acme", "new"), of("acme", "older"), of("acme", "none"), of("other", "old"), of("acme", "old")}
	held := func(project string, version int) hashRow {
		return hashRow{hashKey{"acme", project, version, grouping.Hash{byte(version)}}, grouping.ScopeSite, "g"}
	}
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		rows := []hashRow{held("new", grouping.OverflowVersion), held("new", grouping.Version), held("old", grouping.Version-1), held("old", grouping.Version),
			held("older", 3), held("older", grouping.Version-1)}
		if _, err := claimHashes(t.Context(), tx, rows); err != nil {
			return err
		}
		oldest, err := findOldest(t.Context(), tx, projectsOf(counts))
		if want := (map[Project]int{{"acme", "old"}: grouping.Version - 1, {"acme", "older"}: 3}); !maps.Equal(oldest, want) {
			t.Errorf("asked about %v, want %v", oldest, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A new kind of error in a project without former groups is
// fingerprinted once: the former algorithms don't read it.
func TestNothingToInherit(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	counts := []*grouping.Count{{Organization: "acme", Project: "new"}} // without the samples that the algorithm would read
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		found, err := findInherited(t.Context(), tx, counts)
		if len(found) != 0 {
			t.Errorf("%d inherited hashes of no group", len(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

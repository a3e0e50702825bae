package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
)

// saveMap keeps a map of app.js in a release, as of a time.
func saveMap(ctx context.Context, pool *pgxpool.Pool, project, release string, at time.Time, parts ...sourcemap.Part) (kept postgres.SourceMap, err error) {
	err = pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, "acme"); err != nil {
			return err
		}
		m := postgres.SourceMap{ID: "smp_" + project + release + at.Format("0102150405"), Release: release, Name: "~/app.js",
			Digest: fmt.Appendf(nil, "%032d", at.Unix()), Uploaded: at, Used: at}
		kept, _, err = postgres.SaveMap(ctx, tx, postgres.Project{Organization: "acme", Name: project}, m, parts, func() time.Time { return at })
		return err
	})
	return kept, err
}

func mustSaveMap(t *testing.T, pool *pgxpool.Pool, project, release string, at time.Time) postgres.SourceMap {
	t.Helper()
	kept, err := saveMap(t.Context(), pool, project, release, at, smallPart(t))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// smallPart maps the first place of a script to src/a.ts:1:1.
func smallPart(t *testing.T) sourcemap.Part {
	t.Helper()
	m, err := sourcemap.Read([]byte(`{"version":3,"sources":["src/a.ts"],"names":[],"mappings":"AAAA"}`))
	if err != nil {
		t.Fatal(err)
	}
	return m.Parts[0]
}

// mapRows counts maps, parts and searches.
func mapRows(t *testing.T, pool *pgxpool.Pool) (counts []int) {
	t.Helper()
	asSystem(t, pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT ARRAY[(SELECT count(*) FROM source_maps), (SELECT count(*) FROM source_map_parts), (SELECT count(*) FROM source_map_searches)]`).
			Scan(&counts)
	})
	return counts
}

// An organization has so many maps, and so many bytes of them.
func TestMapsAreBounded(t *testing.T) {
	pool := open(t)
	mustSaveMap(t, pool, "shop", "1.0", noon)
	for column, value := range map[string]string{"stored": "1073741824", "id": ""} {
		asSystem(t, pool, func(tx pgx.Tx) error {
			if column == "id" {
				_, err := tx.Exec(t.Context(), `INSERT INTO source_maps SELECT (m).* FROM (SELECT jsonb_populate_record(m, jsonb_build_object('id', 'smp_' || n, 'stored', 0)) AS m
					FROM source_maps m, generate_series(1, 4999) AS n) s`)
				return err
			}
			_, err := tx.Exec(t.Context(), `UPDATE source_maps SET stored = `+value)
			return err
		})
		if _, err := saveMap(t.Context(), pool, "shop", "2.0", noon, smallPart(t)); !errors.Is(err, postgres.ErrMapsFull) {
			t.Errorf("with too many by %s: %v", column, err)
		}
		asSystem(t, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE source_maps SET stored = 100`)
			return err
		})
	}
	if _, err := saveMap(t.Context(), pool, "shop", "1.0", noon, smallPart(t)); err != nil {
		t.Errorf("a map that is there: %v", err)
	}
}

// Maps go when no error has used them for 90 days, or 30
// days after they were replaced; their parts go with them.
func TestUnusedMapsExpire(t *testing.T) {
	pool := open(t)
	mustSaveMap(t, pool, "shop", "used", noon)
	mustSaveMap(t, pool, "shop", "unused", noon)
	mustSaveMap(t, pool, "shop", "replaced", noon)
	mustSaveMap(t, pool, "shop", "replaced", noon.Add(day))
	left := func(at time.Time) (releases []string) {
		pruneAt(t, pool, at)
		asSystem(t, pool, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT coalesce(array_agg(release ORDER BY release), '{}') FROM source_maps`).Scan(&releases)
		})
		return releases
	}
	if got := left(noon.Add(29 * day)); len(got) != 4 {
		t.Errorf("after 29 days: %v", got)
	}
	if got := left(noon.Add(32 * day)); !slices.Equal(got, []string{"replaced", "unused", "used"}) {
		t.Errorf("after 32 days: %v", got)
	}
	mapper, place := postgres.NewMapper(), trace.Place{File: "https://a.example/app.js", Line: 1, Column: 1}
	project, build, seen := postgres.Project{Organization: "acme", Name: "shop"}, postgres.Build{Release: "used"}, noon.Add(60*day)
	mapper.Ask(project, build, seen, []trace.Place{place})
	asSystem(t, pool, func(tx pgx.Tx) error { return errors.Join(mapper.Find(t.Context(), tx), mapper.Use(t.Context(), tx)) })
	if got := mapper.Mapping(project, build, seen, []trace.Place{place})[place]; got.File != "src/a.ts" || got.Line != 1 {
		t.Errorf("found %+v", got)
	}
	if got := left(noon.Add(100 * day)); !slices.Equal(got, []string{"used"}) {
		t.Errorf("after 100 days: %v", got)
	}
	if left(noon.Add(151 * day)); !slices.Equal(mapRows(t, pool), []int{0, 0, 0}) {
		t.Errorf("rows that are left: %v", mapRows(t, pool))
	}
}

// Of a deleted project no map is left, and those of others stay.
func TestMapsAreErased(t *testing.T) {
	pool := open(t)
	for _, project := range []string{"shop", "lair"} {
		mustSaveMap(t, pool, project, "1.0", noon)
		asSystem(t, pool, func(tx pgx.Tx) error {
			return postgres.SearchMaps(t.Context(), tx, postgres.Project{Organization: "acme", Name: project}, noon)
		})
	}
	for _, step := range []struct {
		project string
		left    []int
	}{{"shop", []int{1, 1, 1}}, {"", []int{0, 0, 0}}} {
		for _, table := range postgres.Erasable() {
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, _, err := table.Erase(t.Context(), tx, erasure.Deletion{Organization: "acme", Project: step.project}, "", 1000)
				return err
			})
		}
		if got := mapRows(t, pool); !slices.Equal(got, step.left) {
			t.Errorf("without project %q there are %v", step.project, got)
		}
	}
}

// One organization's maps are nothing to another.
func TestMapsAreIsolated(t *testing.T) {
	pool := open(t)
	mustSaveMap(t, pool, "shop", "1.0", noon)
	found := read(t, pool, "rival", func(ctx context.Context, tx pgx.Tx) ([]postgres.SourceMap, error) {
		return postgres.FindMaps(ctx, tx, postgres.Project{Organization: "acme", Name: "shop"}, "", postgres.MapPlace{}, 10)
	})
	if len(found) != 0 {
		t.Errorf("another organization sees %v", found)
	}
}

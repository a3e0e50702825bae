package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg/pgtest"
)

var update = flag.Bool("update", false, "rewrite the lists of objects")

// The doctor knows exactly the objects of all migrations; -update
// writes them after a migration.
func TestObjectsAreThoseOfMigrations(t *testing.T) {
	for _, m := range modules {
		rows, err := pgtest.Open(t, m.schema.Name, m.schema.Migrations...).Query(t.Context(), objectsQuery, m.schema.Name)
		must(t, err)
		made, err := pgx.CollectRows(rows, pgx.RowToStructByPos[object])
		must(t, err)
		slices.SortFunc(made, func(a, b object) int {
			return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		if *update {
			writeObjects(t, m.name, made)
			continue
		}
		known, err := objectsOf(m.name)
		must(t, err)
		if !slices.Equal(known, made) {
			t.Errorf("the migrations of %s have changed: go test ./deploy/doctor -run TestObjects -update", m.name)
		}
	}
}

func writeObjects(t *testing.T, module string, objects []object) {
	t.Helper()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, o := range objects {
		must(t, encoder.Encode(o))
	}
	must(t, os.WriteFile("objects/"+module+".jsonl", lines.Bytes(), 0o644))
}

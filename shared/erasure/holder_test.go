package erasure_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
)

// Each holder is found once in each table, also behind many rows and in
// partitions; what is erased, or is going to be, is none.
func TestHolders(t *testing.T) {
	pool := open(t)
	want := []erasure.Deletion{{Organization: "acme", Project: "cart"}, {Organization: "acme", Project: "shop"}, {Organization: "other", Project: "shop"}}
	expect := func(want []erasure.Deletion) {
		t.Helper()
		system(t, pool, func(tx pgx.Tx) error {
			found, err := erasure.Holders(t.Context(), tx, "things", "days")
			if !slices.Equal(found, slices.Concat(want, want)) {
				t.Errorf("found %v, want twice %v", found, want)
			}
			return err
		})
	}
	expect(want)
	for _, of := range []erasure.Deletion{{Organization: "acme", Project: "shop"}, {Organization: "other"}} {
		system(t, pool, func(tx pgx.Tx) error { return erasure.Begin(t.Context(), tx, of, noon, noon) })
	}
	expect(want[:1])
	system(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE nothing (organization text, project text)`)
		if err != nil {
			return err
		}
		found, err := erasure.Holders(t.Context(), tx, "nothing")
		if len(found) > 0 {
			t.Errorf("an empty table has %v", found)
		}
		return err
	})
}

package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A new kind of error in a project without former
// libraries is fingerprinted once.
func TestNothingToInherit(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	counts := []*grouping.Count{{Organization: "acme", Project: "new", Samples: []*grouping.Sample{{}}}} // without the samples that would be fingerprinted
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		found, err := Writer{}.findInherited(t.Context(), tx, counts)
		if len(found) != 0 {
			t.Errorf("%d inherited hashes of no group", len(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

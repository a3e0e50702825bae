package idempotency_test

import (
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

const table = `CREATE TABLE kept (organization text, key bytea, input bytea, answer jsonb, answered_at timestamptz, PRIMARY KEY (organization, key));`

// A request is recognized by its key and input; another input is
// refused. Without a key, or from another organization, it is new.
func TestRequests(t *testing.T) {
	pool := pgtest.Open(t, "answerstest", pg.MigrationSet{Name: "kept", FS: fstest.MapFS{"migrations/0001_kept.sql": {Data: []byte(table)}}, Rights: pg.Rights{"kept": "SELECT, INSERT"}})
	ask := func(organization, key, input string) (answer string, known bool, err error) {
		err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			r := idempotency.NewRequest("kept", organization, key, []byte(input))
			if known, err = r.Load(t.Context(), tx, &answer); known || err != nil {
				return err
			}
			answer = input
			return r.Save(t.Context(), tx, answer, time.Now())
		})
		return answer, known, err
	}
	for _, step := range []struct {
		organization, key, input string
		known                    bool
		err                      error
	}{
		{"acme", "k", "a", false, nil}, {"acme", "k", "a", true, nil}, {"acme", "k", "b", false, idempotency.ErrReused},
		{"acme", "other", "b", false, nil}, {"evil", "k", "b", false, nil}, {"acme", "", "a", false, nil}, {"acme", "", "a", false, nil},
	} {
		answer, known, err := ask(step.organization, step.key, step.input)
		if known != step.known || !errors.Is(err, step.err) || err == nil && answer != step.input {
			t.Errorf("%+v: %q, known %t, error %v", step, answer, known, err)
		}
	}
}

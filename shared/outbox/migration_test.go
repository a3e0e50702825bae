package outbox

import (
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

func migrationFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := migrations.ReadFile("migrations/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Facts that were unpublished while their order was by transaction come
// after the relay's new place; a fully published outbox stays where it
// is. A relay with a page in flight meanwhile has lost its lease.
func TestPositionsOfBefore(t *testing.T) {
	for _, test := range []struct {
		name      string
		published string // the id of the last published fact
		want      int64
	}{
		{"one of a later transaction has a lower position", "second", 0}, {"all is published", "first", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := pg.MigrationSet{Name: "outbox", FS: fstest.MapFS{"migrations/0001_facts.sql": {Data: migrationFile(t, "0001_facts.sql")}}}
			pool := pgtest.OpenOwned(t, "outboxtest", bus.Migrations(), before)
			var position int64
			var leased bool
			err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				for _, statement := range []string{
					`SELECT set_config('weir.organization', '*', true)`,
					`INSERT INTO facts (organization, transaction, id, type, at, body) VALUES ('acme', '20', 'first', 'test', now(), '{}')`,
					`INSERT INTO facts (organization, transaction, id, type, at, body) VALUES ('acme', '10', 'second', 'test', now(), '{}')`,
					`INSERT INTO bus_relays (name, transaction, position, owner, epoch, expires_at)
						SELECT 'relay', transaction::text::bigint, position, 'before', 7, 'infinity' FROM facts WHERE id = '` + test.published + `'`,
					`UPDATE bus_relays SET position = 2 WHERE transaction = 20`, // all is published
					string(migrationFile(t, "0002_turns.sql")),
				} {
					if _, err := tx.Exec(t.Context(), statement); err != nil {
						return err
					}
				}
				return tx.QueryRow(t.Context(), `SELECT position, epoch = 7 OR owner = 'before' OR expires_at > now() FROM bus_relays`).Scan(&position, &leased)
			})
			if err != nil || position != test.want || leased {
				t.Errorf("the relay goes on behind %d, want %d; the lease of before holds: %t; error %v", position, test.want, leased, err)
			}
		})
	}
}

package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Writers take locks in one order (see ledger/internal/postgres): who
// waits for a lock holds none of a later kind. In each case a
// transaction holds an organization's books, another waits for them,
// and then the first continues.
func TestLocksHaveOneOrder(t *testing.T) {
	for name, test := range map[string]struct {
		waits  func(consumer *bus.Consumer, tx pgx.Tx) error
		goesOn func(tx pgx.Tx) error
	}{
		"plans of organizations in another order": {
			func(consumer *bus.Consumer, tx pgx.Tx) error {
				return consumer.Tenants(t.Context(), tx, createdOrganizations("second", "first"))
			},
			func(tx pgx.Tx) error {
				_, err := postgres.LockKnown(t.Context(), tx, []string{"second"})
				return err
			},
		},
		"a charge on a day without a partition": {
			func(consumer *bus.Consumer, tx pgx.Tx) error {
				return consumer.Logs(t.Context(), tx, []sharedbus.Record{accepted("first", 0, 0)})
			},
			func(tx pgx.Tx) error { return postgres.EnsureDays(t.Context(), tx, time.Now()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			consumer, pool := newConsumer(t)
			inTx := func(do func(pgx.Tx) error) error {
				return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(pg.AsSystem(t.Context(), tx), do(tx)) })
			}
			if err := inTx(func(tx pgx.Tx) error {
				return postgres.AddMissing(t.Context(), tx, time.Now(), []string{"first", "second"})
			}); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			err := inTx(func(tx pgx.Tx) error {
				if _, err := postgres.LockKnown(t.Context(), tx, []string{"first"}); err != nil {
					return err
				}
				go func() { waited <- inTx(func(tx pgx.Tx) error { return test.waits(consumer, tx) }) }()
				testenv.Eventually(t, 30*time.Second, func() error { return blocked(t, pool) })
				return test.goesOn(tx)
			})
			if err := errors.Join(err, <-waited); err != nil {
				t.Error(err)
			}
		})
	}
}

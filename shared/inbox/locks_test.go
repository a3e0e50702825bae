package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A lookup of records locks their days, not the whole month of an
// inbox, also with PostgreSQL's generic plans: for the parts of a
// request, and for a key whose request may be incomplete.
func TestLocksFewDays(t *testing.T) {
	pool := onOneConnection(t, openOwned(t))
	var days []time.Time
	for n := range 30 {
		days = append(days, noon.AddDate(0, 0, -n).Truncate(24*time.Hour))
	}
	if err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return pg.EnsureDays(t.Context(), tx, "inbox", days...) }); err != nil {
		t.Fatal(err)
	}
	asSystem(t, pool, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest)
		VALUES ('key', '`+noon.Add(-time.Hour).Format(time.RFC3339)+`', '`+batch("1")+`', 'digest')`)
	for range 7 { // the sixth time has a generic plan
		if locked := daysLocked(t, pool, keyed("key", "digest", noon, parts("2", 1, 2)...)); locked != 1 {
			t.Fatalf("%d days are locked, want that of the records", locked)
		}
	}
}

// daysLocked returns how many days of the inbox a transaction locks
// that judges records.
func daysLocked(t *testing.T, pool *pgxpool.Pool, records []contract.LogsAccepted) (days int) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if err := pg.AsSystem(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Filter(t.Context(), tx, records); err != nil {
		t.Fatal(err)
	}
	err = tx.QueryRow(t.Context(), `SELECT count(DISTINCT l.relation) FROM pg_locks l JOIN pg_inherits i ON i.inhrelid = l.relation
		WHERE l.pid = pg_backend_pid() AND i.inhparent = 'inbox'::regclass`).Scan(&days)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

package app

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
)

// deadlines counts statements, and those with a deadline.
type deadlines struct{ all, limited int }

func (d *deadlines) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	d.all++
	if _, limited := ctx.Deadline(); limited {
		d.limited++
	}
	return ctx
}

func (*deadlines) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A start does not wait for a long migration. The log store does,
// however long: an ended migration would start again forever.
func TestTheLogStoreMigratesWithoutADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		migrate func(*App, context.Context) error
		limited bool
	}{"a start": {(*App).migrateAtStart, true}, "the log store": {(*App).migrate, false}} {
		config, err := pgxpool.ParseConfig(pgtest.URL(t, postgres.Schema, postgres.Migrations()...))
		if err != nil {
			t.Fatal(err)
		}
		var seen deadlines
		config.ConnConfig.RuntimeParams["search_path"], config.ConnConfig.Tracer = postgres.Schema, &seen
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		err = c.migrate(&App{base: &service.Base{Pool: pool, Cursors: httpapi.NewCursors(identity.OrganizationOf)}}, t.Context())
		if err != nil || seen.all == 0 || (seen.limited > 0) != c.limited {
			t.Errorf("%s: %d of %d statements have a deadline, %v", name, seen.limited, seen.all, err)
		}
	}
}

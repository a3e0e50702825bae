package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
)

// Nothing is accepted before the log is compared with the accounts, nor
// while it ends before what they count; brokers that don't answer
// change nothing.
func TestALogThatEndsBeforeTheAccountsAcceptsNothing(t *testing.T) {
	end, failure := int64(9), error(nil)
	ends := func(context.Context) (ingest.Positions, error) { return ingest.Positions{0: 50, 1: end}, failure }
	counted := func() ingest.Positions { return ingest.Positions{0: 50, 1: 10} }
	a := &App{base: &service.Base{}, logWatch: &logWatch{counted: counted, ends: ends, logger: slog.New(slog.DiscardHandler)}}
	if err := a.logIntact(); !errors.Is(err, errLogUnknown) {
		t.Errorf("before it was compared: %v", err)
	}
	a.logWatch.compare(t.Context())
	err := a.logIntact()
	if !bus.IsLostEnd(err) || !strings.Contains(err.Error(), "partition 1 of weir.logs.v1 ends at 9") || !strings.Contains(err.Error(), "weir resume") {
		t.Errorf("it ends too early: %v", err)
	}
	end, failure = 10, errors.New("away")
	if a.logWatch.compare(t.Context()); a.logIntact() == nil {
		t.Error("brokers that don't answer are taken for a sound log")
	}
	failure = nil
	if a.logWatch.compare(t.Context()); a.logIntact() != nil {
		t.Errorf("it has what is counted: %v", a.logIntact())
	}
	if n := testing.AllocsPerRun(100, func() { _ = a.logIntact() }); n > 0 {
		t.Errorf("each request allocates %v times to know it", n)
	}
	a.config.OthersIntact = func() error { return bus.ErrLogDiffers }
	if err := a.logIntact(); !errors.Is(err, bus.ErrLogDiffers) {
		t.Errorf("another module can't go on: %v", err)
	}
}

func soundLog(t *testing.T) *logWatch {
	none := func(context.Context) (ingest.Positions, error) { return nil, nil }
	w := &logWatch{counted: func() ingest.Positions { return nil }, ends: none, logger: slog.New(slog.DiscardHandler)}
	w.compare(t.Context())
	return w
}

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
		migrate func(*logStore, context.Context) error
		limited bool
	}{"a start": {(*logStore).migrateAtStart, true}, "the log store": {(*logStore).migrate, false}} {
		config, err := pgxpool.ParseConfig(pgtest.URL(t, postgres.Schema, postgres.Migrations()...))
		testenv.Must(t, err)
		var seen deadlines
		config.ConnConfig.RuntimeParams["search_path"], config.ConnConfig.Tracer = postgres.Schema, &seen
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		testenv.Must(t, err)
		defer pool.Close()
		err = c.migrate(&logStore{base: &service.Base{Opened: service.Opened{Pool: pool}, Cursors: httpapi.NewCursors(identity.OrganizationOf)}}, t.Context())
		if err != nil || seen.all == 0 || (seen.limited > 0) != c.limited {
			t.Errorf("%s: %d of %d statements have a deadline, %v", name, seen.limited, seen.all, err)
		}
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/rebuild"
	"github.com/weirlog/weir/ledger/internal/services"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Rebuilt is what came of making the ledger anew.
type Rebuilt struct {
	rebuild.Report
	Skipped int // records that can't be applied: they are parked
}

// Rebuild makes the ledger anew from the log and the decisions, in the schema
// ledger_rebuilding of its database, and compares the two. That which is the same
// is called ledger_rebuilt then. It changes nothing of the ledger, which may run
// meanwhile. Where the log or the decisions lack what was booked it refuses.
func Rebuild(ctx context.Context, config Config, logger *slog.Logger) (made Rebuilt, err error) {
	if err := config.Validate(); err != nil {
		return made, err
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return made, err
	}
	before, err := pg.OpenCurrent(ctx, config.DatabaseURL.Reveal(), postgres.Schema, postgres.Migrations()...)
	if err != nil {
		return made, err
	}
	defer before.Close()
	anew, err := openRebuilt(ctx, config.DatabaseURL.Reveal())
	if err != nil {
		return made, err
	}
	defer anew.Close()
	logger.Info("making the ledger anew", "schema", postgres.RebuildingSchema)
	made, err = config.rebuild(ctx, before, anew, dialer)
	switch {
	case err != nil:
		err = errors.Join(err, dropRebuilt(ctx, anew))
	case len(made.Differences) == 0:
		_, err = anew.Exec(ctx, `ALTER SCHEMA `+postgres.RebuildingSchema+` RENAME TO `+postgres.RebuiltSchema)
	}
	if errors.Is(err, bus.ErrLost) || errors.Is(err, rebuild.ErrForgotten) {
		err = fmt.Errorf("%w; this ledger can't be made anew, but restored from a backup", err)
	}
	return made, err
}

// openRebuilt makes the schema. None that another rebuild has made may be there.
func openRebuilt(ctx context.Context, url string) (*pgxpool.Pool, error) {
	pool, err := pg.Open(ctx, url, postgres.RebuildingSchema)
	if err != nil {
		return nil, err
	}
	if err = noRebuilt(ctx, pool); err == nil {
		err = pg.Migrate(ctx, pool, postgres.RebuildingSchema, postgres.Migrations()...)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func noRebuilt(ctx context.Context, pool *pgxpool.Pool) error {
	var there []string
	err := pool.QueryRow(ctx, `SELECT array_agg(nspname::text) FROM pg_namespace WHERE nspname = ANY ($1)`,
		[]string{postgres.RebuildingSchema, postgres.RebuiltSchema}).Scan(&there)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("the schema %[1]s is there already: DROP SCHEMA %[1]s CASCADE, if nothing needs it", there[0])
	}
	return err
}

// dropRebuilt leaves nothing of a ledger that was not made to the end, also
// where ctx has ended.
func dropRebuilt(ctx context.Context, anew *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestDrop)
	defer cancel()
	_, err := anew.Exec(ctx, `DROP SCHEMA `+postgres.RebuildingSchema+` CASCADE`)
	return err
}

const longestDrop = time.Minute

func (c Config) rebuild(ctx context.Context, before, anew *pgxpool.Pool, dialer *sharedbus.Dialer) (made Rebuilt, err error) {
	replay := &bus.Replay{Brokers: c.Brokers, Dialer: dialer, Pool: anew, Shares: c.RebuildShares, BatchSize: c.RebuildAtOnce}
	of := services.New(services.Config{Reads: anew, Writes: anew, Save: bus.SaveEvents, Rules: c.rules(), Kept: c.kept(), Clock: replay.Now})
	replay.Consumer = &bus.Consumer{Services: of, Clock: replay.Now, Conflicts: bus.NewConflicts(prometheus.NewRegistry())}
	names := postgres.Names{Relay: bus.RelayName, Group: contract.GroupLedgerTenants, Topic: contract.TopicTenants}
	work := rebuild.Rebuild{Before: before, Anew: anew, Log: replay, Work: of.Work, Names: names}
	made.Report, err = work.Run(ctx)
	made.Skipped = replay.Skipped
	return made, err
}

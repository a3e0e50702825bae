package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/rebuild"
	"github.com/weirlog/weir/ledger/internal/services"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Rebuilt is the result of a rebuild.
type Rebuilt struct {
	rebuild.Report
	Skipped int // records that can't be applied: they are parked
}

// Rebuild builds the ledger again from the log and the decisions, in
// the schema ledger_rebuilding of its database, and compares the two.
// If they are equal it renames the schema to ledger_rebuilt. It changes
// nothing of the ledger, which may run meanwhile. Where the log or the
// decisions lack their beginning it begins at a checkpoint; it fails if
// there is none that they reach.
func Rebuild(ctx context.Context, config Config, logger *slog.Logger) (result Rebuilt, err error) {
	if err := config.Validate(); err != nil {
		return result, err
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return result, err
	}
	source, err := pg.OpenCurrent(ctx, config.DatabaseURL.Reveal(), postgres.Schema, postgres.Migrations()...)
	if err != nil {
		return result, err
	}
	defer source.Close()
	target, err := openRebuilt(ctx, config.DatabaseURL.Reveal())
	if err != nil {
		return result, err
	}
	defer target.Close()
	logger.Info("rebuilding the ledger", "schema", postgres.RebuildingSchema)
	result, err = config.rebuild(ctx, source, target, dialer)
	switch {
	case err != nil:
		err = errors.Join(err, dropRebuilt(ctx, target))
	case len(result.Differences) == 0:
		_, err = target.Exec(ctx, `ALTER SCHEMA `+postgres.RebuildingSchema+` RENAME TO `+postgres.RebuiltSchema)
	}
	if errors.Is(err, bus.ErrLost) || errors.Is(err, rebuild.ErrPruned) {
		err = fmt.Errorf("%w; restore the ledger from a backup (weir restore), or wait for the next checkpoint", err)
	}
	return result, err
}

// openRebuilt creates the schema. It fails if another rebuild has left one.
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
	var existing []string
	err := pool.QueryRow(ctx, `SELECT array_agg(nspname::text) FROM pg_namespace WHERE nspname = ANY ($1)`,
		[]string{postgres.RebuildingSchema, postgres.RebuiltSchema}).Scan(&existing)
	if err == nil && len(existing) > 0 {
		err = fmt.Errorf("the schema %[1]s exists already: DROP SCHEMA %[1]s CASCADE, if nothing needs it", existing[0])
	}
	return err
}

// dropRebuilt removes an incomplete rebuild, even after ctx has ended.
func dropRebuilt(ctx context.Context, target *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	_, err := target.Exec(ctx, `DROP SCHEMA `+postgres.RebuildingSchema+` CASCADE`)
	return err
}

const dropTimeout = time.Minute

func (c Config) rebuild(ctx context.Context, source, target *pgxpool.Pool, dialer *sharedbus.Dialer) (result Rebuilt, err error) {
	replay := &bus.Replay{Brokers: c.Brokers, Dialer: dialer, Pool: target, Shares: c.RebuildShares, BatchSize: c.RebuildBatch}
	of := services.New(services.Config{Reads: target, Writes: target, Save: bus.SaveEvents, Kept: ledger.DefaultRetention(), Clock: replay.Now})
	replay.Consumer = &bus.Consumer{Services: of, Clock: replay.Now, Conflicts: bus.NewConflicts(prometheus.NewRegistry())}
	work := rebuild.Rebuild{
		Source: source, Target: target, Log: replay, Work: of.Work,
		Relay: bus.RelayName, Tenants: contract.GroupLedgerTenants, Outcomes: contract.GroupLedgerOutcomes,
	}
	result.Report, err = work.Run(ctx)
	result.Skipped = replay.Skipped
	return result, err
}

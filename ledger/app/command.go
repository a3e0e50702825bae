package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/http"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/rebuild"
	"github.com/weirlog/weir/ledger/internal/services"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/service"
)

// Verify checks the whole database, and the log as far as it is kept,
// and returns the violations.
func Verify(ctx context.Context, config Config) ([]ledger.Violation, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return nil, err
	}
	pool, err := pg.Open(ctx, config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	kept, err := keptBy(ctx, pool)
	if err != nil {
		return nil, err
	}
	return integrity.Verify(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, kept, config.WallClock()())
}

// keptBy returns how long the ledger of a database keeps what.
func keptBy(ctx context.Context, pool *pgxpool.Pool) (kept ledger.Retention, err error) {
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		kept, err = postgres.LoadRetention(ctx, tx)
		return err
	})
	return kept, err
}

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
	of := services.New(services.Config{
		Reads: services.Reads{Pool: target}, Decisions: services.Decisions{Pool: target, Save: bus.SaveEvents},
		Kept: ledger.DefaultRetention(), Clock: replay.Now,
	})
	replay.Consumer = &bus.Consumer{Services: of, Clock: replay.Now, Conflicts: bus.NewConflicts(prometheus.NewRegistry())}
	work := rebuild.Rebuild{
		Source: source, Target: target, Log: replay, Work: of.Work,
		Relay: bus.RelayName, Tenants: contract.GroupLedgerTenants, Outcomes: contract.GroupLedgerOutcomes,
	}
	result.Report, err = work.Run(ctx)
	result.Skipped = replay.Skipped
	return result, err
}

// A Condition is the progress of the running checks and the chains, and
// the violations of a short examination.
type Condition = integrity.Condition

// Examine checks the books from outside with a few queries. An hour
// that ended before due must be sealed.
func Examine(ctx context.Context, config Config, pool *pgxpool.Pool, due time.Time) (Condition, error) {
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return Condition{}, err
	}
	return integrity.Examine(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, due, config.kept().ChargesSince(due))
}

// An OfflineConfig configures a program that reads the ledger's
// database and log, and serves nobody. It needs no settings of the
// ledger: terms are in the decisions, and retention is recorded.
type OfflineConfig struct {
	service.Servers `embed:""`
}

// Ledger returns the configuration of the ledger that it reads.
func (c OfflineConfig) Ledger() Config {
	return Config{Config: service.Config{Servers: c.Servers}}
}

// Republish publishes the state of every account again as the newest:
// for books of an earlier hour or a new topic. tx sees every
// organization and works in the module's schema.
func Republish(ctx context.Context, tx pgx.Tx) error {
	if err := postgres.RaiseVersions(ctx, tx); err != nil {
		return err
	}
	return postgres.MarkAllUnpublished(ctx, tx)
}

// Charged is what requests of one organization were charged.
type Charged = postgres.Charged

// ChargedIn returns what was charged for records in a range of offsets
// of a partition of weir.logs.v1, by organization. tx is as for Republish.
func ChargedIn(ctx context.Context, tx pgx.Tx, partition int, from, to int64) ([]Charged, error) {
	return postgres.ChargedIn(ctx, tx, partition, from, to)
}

// AcceptLost skips offsets of a partition of weir.logs.v1 that are
// lost, from the booked end to an offset. tx is as for Republish.
func AcceptLost(ctx context.Context, tx pgx.Tx, partition int, to int64) error {
	return postgres.SaveLost(ctx, tx, partition, to)
}

// A DailyRoot is the root of the chains at the end of a day. A copy
// kept elsewhere proves that the books of that day are unchanged.
type DailyRoot = postgres.DailyRoot

// DailyRoots returns the roots of all days kept. tx works in the module's schema.
func DailyRoots(ctx context.Context, tx pgx.Tx) ([]DailyRoot, error) {
	return postgres.DailyRoots(ctx, tx)
}

// Schema describes the schema of the module.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Holders returns whose books and budgets there are. tx acts as the system, in the
// module's schema.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return postgres.Holders(ctx, tx)
}

// Holding returns how many bytes an organization or a project was
// charged. tx is as for Holders.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return postgres.Holding(ctx, tx, of)
}

// FirstPlan returns the tier with which an organization began, and when. It
// is empty without books or a plan. tx is as for Holders.
func FirstPlan(ctx context.Context, tx pgx.Tx, organization string) (tier string, from time.Time, err error) {
	plan, err := postgres.FirstPlan(ctx, tx, organization)
	return string(plan.Tier), plan.From, err
}

// Outboxes returns the tables from which the module publishes.
func Outboxes() []relay.Source { return []relay.Source{{Relay: bus.RelayName, Table: "facts"}} }

// relays is the number of publishers, each with its own connection.
const relays = 1

// Connections is the most connections of a process to its database.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), readers) + relays }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// HistoryConfig names a ClickHouse to which entries move.
type HistoryConfig struct {
	URL     httpapi.Secret `name:"clickhouse-url" help:"ClickHouse to which entries move from Postgres, by its HTTP interface, such as https://user:password@host:8443/weir. Empty: they stay in Postgres." env:"WEIR_INGEST_CLICKHOUSE_URL" default:""`
	ReadURL httpapi.Secret `name:"clickhouse-read-url" help:"The same of a user that only reads, for searches. Empty: the other one." env:"WEIR_INGEST_CLICKHOUSE_READ_URL" default:""`
	Cluster string         `name:"clickhouse-cluster" help:"ClickHouse's name of its cluster, where the table is replicated and distributed." env:"WEIR_INGEST_CLICKHOUSE_CLUSTER"`
	Quorum  int            `name:"clickhouse-quorum" help:"How many replicas must have an insert before its entries leave Postgres. Up to 1: one." env:"WEIR_INGEST_CLICKHOUSE_QUORUM" default:"0"`
}

// Validate returns what is wrong. It shows no secret.
func (c HistoryConfig) Validate() error {
	var errs []error
	for name, address := range map[string]string{"WEIR_INGEST_CLICKHOUSE_URL": c.URL.Reveal(), "WEIR_INGEST_CLICKHOUSE_READ_URL": c.ReadURL.Reveal()} {
		if address == "" {
			continue
		}
		if err := clickhouse.Check(address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if c.URL == "" && c.ReadURL != "" {
		errs = append(errs, errors.New("WEIR_INGEST_CLICKHOUSE_READ_URL is set, but not WEIR_INGEST_CLICKHOUSE_URL"))
	}
	if c.Quorum < 0 {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_CLICKHOUSE_QUORUM is %d: it can't be negative", c.Quorum))
	}
	return errors.Join(errs...)
}

func (c HistoryConfig) open(limits postgres.Limits, clock func() time.Time) (*clickhouse.Store, error) {
	return clickhouse.New(clickhouse.Config{
		URL: c.URL.Reveal(), ReadURL: c.ReadURL.Reveal(), Layout: clickhouse.Layout{Cluster: c.Cluster}, Quorum: c.Quorum,
		Limits: clickhouse.Limits(limits), Clock: clock,
	})
}

// blocksOnly is a log store without ClickHouse. Where entries were moved to
// one, it can't see all, and says so.
type blocksOnly struct {
	*postgres.Store
	moves  *postgres.Moves
	logger *slog.Logger
	known  atomic.Bool
	astray atomic.Bool
}

var errAstray = httpapi.Unavailable(
	"A part of the entries is in ClickHouse, which this process can't reach: its operator has to set WEIR_INGEST_CLICKHOUSE_URL.", time.Minute)

func (b *blocksOnly) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error) {
	if err := b.complete(ctx); err != nil {
		return ingest.Result{}, err
	}
	return b.Store.Search(ctx, organization, search)
}

func (b *blocksOnly) Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error) {
	if err := b.complete(ctx); err != nil {
		return ingest.Counted{}, err
	}
	return b.Store.Count(ctx, organization, count, top)
}

// complete returns nil if all entries are here.
func (b *blocksOnly) complete(ctx context.Context) error {
	if !b.known.Load() {
		if err := b.look(ctx); err != nil {
			return err
		}
	}
	if b.astray.Load() {
		return errAstray
	}
	return nil
}

// look looks whether entries were moved away.
func (b *blocksOnly) look(ctx context.Context) error {
	last, emptied, err := b.moves.Last(ctx)
	if err != nil {
		return err
	}
	if before := b.astray.Swap(last != emptied); last != emptied && !before {
		b.logger.Error("a part of the entries is in ClickHouse, but WEIR_INGEST_CLICKHOUSE_URL is empty: searches are refused")
	}
	b.known.Store(true)
	return nil
}

func (b *blocksOnly) watch(ctx context.Context) error {
	return lifecycle.Every(ctx, time.Minute, b.look, lifecycle.Warn(b.logger, "cannot look where entries are"))
}

// HistorySchema returns the statements that make the tables of ClickHouse, with users and row policies.
func HistorySchema(database, cluster, policy string, coldDays int) string {
	layout := clickhouse.Layout{Database: database, Cluster: cluster, Policy: policy, Cold: coldDays}
	return strings.Join(append(layout.Table(), layout.Access()...), ";\n\n") + ";\n"
}

// A HistoryMove moves all entries to one of the two stores, while processes of
// ingest run or not. It may be repeated, and go on where another was killed.
type HistoryMove struct {
	DatabaseURL string
	ClickHouse  HistoryConfig
	Archive     ArchiveConfig // where texts of past days may be
	To          string        // clickhouse or postgres
	Progress    func(moved int, waiting int64)
	Clock       func() time.Time
	Logger      *slog.Logger
}

// Run returns once everything has moved that was there when it began.
func (h HistoryMove) Run(ctx context.Context) error {
	pool, err := pg.Open(ctx, h.DatabaseURL, postgres.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows, err := h.ClickHouse.open(postgres.DefaultLimits(), h.Clock)
	if err != nil {
		return err
	}
	archive, err := h.Archive.open()
	if err != nil {
		return err
	}
	limits := history.Limits()
	limits.Least, limits.Wait = 1, 0
	metrics := prometheus.NewRegistry()
	moves := &postgres.Moves{Pool: pool, Limits: limits, Store: postgres.NewStore(postgres.Config{Objects: archive, Clock: h.Clock, Metrics: metrics})}
	mover := history.NewMover(history.Config{Moves: moves, Rows: rows, NewID: uuid.NewString, Clock: h.Clock, Metrics: metrics, Logger: h.Logger})
	if err := moves.SetTarget(ctx, h.To); err != nil {
		return err
	}
	begun := h.Clock()
	for moved := 0; ; moved++ {
		more, err := mover.Step(ctx)
		if err != nil {
			return err
		}
		left, err := h.left(ctx, moves, begun)
		if err != nil || left == 0 {
			return err
		}
		if h.Progress(moved, left); !more {
			lifecycle.Pause(ctx, time.Second) // other processes end their moves
		}
	}
}

// left is what has not moved: bytes of blocks, or moves that come back.
func (h HistoryMove) left(ctx context.Context, moves *postgres.Moves, begun time.Time) (int64, error) {
	last, emptied, err := moves.Last(ctx)
	if err != nil {
		return 0, err
	}
	if h.To == history.PostgreSQL {
		return last - emptied, nil
	}
	waiting, err := moves.Waiting(ctx)
	if err != nil || waiting.Since.IsZero() || waiting.Since.After(begun) {
		return 0, err
	}
	return waiting.Bytes, nil
}

// DiscardHistory deletes what ClickHouse has of moves that PostgreSQL does not
// know, after PostgreSQL was restored from a backup: the log brings these entries again.
func DiscardHistory(ctx context.Context, databaseURL string, config HistoryConfig, clock func() time.Time) (discarded int64, err error) {
	pool, err := pg.Open(ctx, databaseURL, postgres.Schema)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	rows, err := config.open(postgres.DefaultLimits(), clock)
	if err != nil {
		return 0, err
	}
	moves := &postgres.Moves{Pool: pool}
	known, _, err := moves.Last(ctx)
	if err != nil {
		return 0, err
	}
	last, err := rows.LastMove(ctx)
	if err != nil || last <= known {
		return 0, err
	}
	return last - known, rows.Discard(ctx, known)
}

// A HistoryCondition is what ClickHouse has of the latest moves.
type HistoryCondition struct {
	Rows, Entries int64 // as many if each entry is there once
	Known, Last   int64 // numbers of moves, in PostgreSQL and in ClickHouse
}

// examined is how many moves are examined.
const examined = 100

// ExamineHistory asks ClickHouse whether it has the entries of the latest moves
// once. Without one, nothing may be there.
func ExamineHistory(ctx context.Context, config HistoryConfig, pool *pgxpool.Pool, clock func() time.Time) (found HistoryCondition, err error) {
	moves := &postgres.Moves{Pool: pool}
	var emptied int64
	if found.Known, emptied, err = moves.Last(ctx); err != nil {
		return found, err
	}
	if config.URL == "" {
		if found.Known != emptied {
			err = errors.New("a part of the entries is in ClickHouse, but WEIR_INGEST_CLICKHOUSE_URL is empty")
		}
		return found, err
	}
	rows, err := config.open(postgres.DefaultLimits(), clock)
	if err != nil {
		return found, err
	}
	if found.Last, err = rows.LastMove(ctx); err != nil {
		return found, err
	}
	found.Rows, found.Entries, err = rows.Verify(ctx, found.Last-examined)
	return found, err
}

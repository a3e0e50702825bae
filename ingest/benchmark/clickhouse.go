package benchmark

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/embedded/chdb"
	"github.com/weirlog/weir/shared/measure"
)

// onClickHouse is Weir whose entries move to ClickHouse: chdb, as a process of its own.
type onClickHouse struct {
	*weir
	engine *chdb.Server
	rows   *clickhouse.Store
	mover  *history.Mover
}

func newOnClickHouse(ctx context.Context, database, dir string) (*onClickHouse, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	engine, err := chdb.Start(ctx, dir)
	if err != nil {
		return nil, err
	}
	name, err := engine.Create(ctx)
	if err != nil {
		return nil, err
	}
	url := engine.URL + "/" + name
	w, err := newWeir(ctx, database)
	if err != nil {
		return nil, err
	}
	o := &onClickHouse{weir: w, engine: engine}
	w.searched = o.store(url, postgres.DefaultLimits())
	w.counted = o.store(url, postgres.Limits{Bytes: math.MaxInt, Time: time.Hour})
	limits := history.Limits()
	limits.Least, limits.Wait = 1, 0
	o.mover = history.NewMover(history.Config{
		Moves: &postgres.Moves{Pool: w.pool, Store: w.logs.Store, Limits: limits}, Rows: o.rows,
		NewID: uuid.NewString, Clock: time.Now, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	return o, nil
}

func (o *onClickHouse) store(url string, limits postgres.Limits) searcher {
	rows, err := clickhouse.New(clickhouse.Config{URL: url, Limits: clickhouse.Limits(limits), Clock: time.Now})
	if err != nil {
		panic(err) // it is chdb's
	}
	o.rows = rows
	blocks := postgres.NewStore(postgres.Config{Readers: o.readers, Limits: limits, Moves: true, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	return &history.Store{Blocks: blocks, Rows: rows, Clock: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

func (*onClickHouse) name() string { return "Weir, ClickHouse" }

func (o *onClickHouse) close() error {
	o.weir.close()
	return o.engine.Stop()
}

func (o *onClickHouse) processes(context.Context) []measure.Process {
	return []measure.Process{{Pid: os.Getpid()}, {Pid: o.engine.Pid}}
}

// settle moves all entries, as is done all the time.
func (o *onClickHouse) settle(ctx context.Context) error { return o.mover.RunOnce(ctx) }

// rest merges parts, as ClickHouse does by itself.
func (o *onClickHouse) rest(ctx context.Context) error { return o.rows.Optimize(ctx) }

func (o *onClickHouse) size(ctx context.Context) (all int64, parts string, err error) {
	sizes, err := o.rows.Sizes(ctx)
	for _, size := range sizes {
		all += size.Bytes
		parts += fmt.Sprintf(" %s %d MB,", size.Of, size.Bytes>>20)
	}
	return all, parts, err
}

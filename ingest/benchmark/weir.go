package benchmark

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/pg"
)

const organization, project = "org_1", "prj_1"

// retention is longer than any benchmark is younger than its day: ClickHouse goes by its own clock.
const retention = 3650

// A searcher is a log store as searches have it.
type searcher interface {
	Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error)
	Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error)
}

// weir is the log store as ingest has it, fed by what its consumer gets.
type weir struct {
	database string
	pool     *pgxpool.Pool
	readers  *pgxpool.Pool
	searched searcher
	counted  searcher // without limits, which would cut a day
	logs     bus.LogStore
	merger   *postgres.Merger
	offset   atomic.Int64
}

func newWeir(ctx context.Context, database string) (*weir, error) {
	w := &weir{database: database}
	var err error
	if w.pool, err = pg.OpenMigrated(ctx, database, postgres.Schema, postgres.Migrations()...); err != nil {
		return nil, err
	}
	if w.readers, err = pg.OpenReaders(ctx, database, postgres.Schema, 4); err != nil {
		w.pool.Close()
		return nil, err
	}
	ends := begins.Add(27 * time.Hour) // all spans are closed
	config := postgres.Config{Readers: w.readers, Limits: postgres.DefaultLimits(), Clock: time.Now, Metrics: prometheus.NewRegistry()}
	w.searched = postgres.NewStore(config)
	config.Limits, config.Metrics = postgres.Limits{Bytes: math.MaxInt, Time: time.Hour}, prometheus.NewRegistry()
	w.counted = postgres.NewStore(config)
	config.Clock, config.Metrics = func() time.Time { return ends }, prometheus.NewRegistry()
	keeper := postgres.NewStore(config)
	w.logs = bus.LogStore{Store: keeper, NewID: uuid.NewString}
	w.merger = postgres.NewMerger(postgres.MergerConfig{
		Store: keeper, Pool: w.pool, NewID: uuid.NewString, Metrics: config.Metrics, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return ends.Add(time.Minute) }, // small blocks have gathered
	})
	return w, nil
}

func (*weir) name() string { return "Weir" }

func (w *weir) close() {
	w.readers.Close()
	w.pool.Close()
}

func (w *weir) processes(ctx context.Context) []measure.Process {
	return []measure.Process{{Pid: os.Getpid()}, measure.Postmaster(ctx, w.database)}
}

// keep stores requests in one transaction, as the consumer of weir.logs.v1 does.
func (w *weir) keep(ctx context.Context, requests []request) error {
	records := make([]sharedbus.Record, len(requests))
	for i, r := range requests {
		logs := contract.LogsAccepted{
			Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: project, Environment: "prod",
			Key: "key_1", Source: "weir/ingest", Time: r.at, Entries: r.entries, Bytes: int64(len(r.lines) - r.entries), RetentionDays: retention, Lines: r.lines,
		}
		records[i] = sharedbus.Record{Topic: contract.TopicLogs, Offset: w.offset.Add(1), Value: r.lines}
		for name, value := range logs.Headers() {
			records[i].Headers = append(records[i].Headers, sharedbus.Header{Key: name, Value: []byte(value)})
		}
	}
	return pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error { return w.logs.Consume(ctx, tx, records) })
}

// settle merges small blocks.
func (w *weir) settle(ctx context.Context) error { return w.merger.RunOnce(ctx) }

// rest does what PostgreSQL would do by itself within minutes.
func (w *weir) rest(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

// size is that of all tables and indexes, and of the parts of the blocks.
func (w *weir) size(ctx context.Context) (all int64, parts string, err error) {
	err = pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error {
		var blocks, texts, directory, words int64
		query := `SELECT count(*), sum(octet_length(texts)), sum(octet_length(directory)), sum(octet_length(words)) FROM blocks`
		if err := tx.QueryRow(ctx, query).Scan(&blocks, &texts, &directory, &words); err != nil {
			return err
		}
		parts = fmt.Sprintf("%d blocks: texts %d MB, directories %d MB, filters of words %d MB", blocks, texts>>20, directory>>20, words>>20)
		return tx.QueryRow(ctx, `SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
			postgres.Schema).Scan(&all)
	})
	return all, parts, err
}

func (w *weir) ask(ctx context.Context, a ask, measured measured) (answer, error) {
	search := ingest.Search{Limit: pageSize}
	if !a.from.IsZero() {
		from := ingest.InstantOf(a.from)
		search.From = &from
	}
	if !a.to.IsZero() {
		to := ingest.InstantOf(a.to)
		search.To = &to
	}
	var err error
	if search.Query, err = ingest.ParseQuery(a.query); err != nil {
		return answer{}, err
	}
	if a.count != nil {
		return w.count(ctx, search, a.count, measured)
	}
	for range a.page { // as a reader has a page's cursor from the page before
		result, err := w.searched.Search(ctx, organization, search)
		if err != nil || result.Next == nil {
			return answer{}, fmt.Errorf("there is no page %d: %w", a.page, err)
		}
		search.Start = *result.Next
	}
	var found answer
	err = measured(func() error {
		for {
			result, err := w.searched.Search(ctx, organization, search)
			if err != nil {
				return err
			}
			for _, f := range result.Found {
				found.times = append(found.times, f.Time.Time().UnixMilli())
			}
			if !result.Incomplete { // else it goes on as a client would
				return nil
			}
			search.Start, search.Limit = *result.Next, pageSize-len(found.times)
		}
	})
	return found, err
}

func (w *weir) count(ctx context.Context, search ingest.Search, c *count, measured measured) (answer, error) {
	asked := ingest.Count{Search: search, Every: c.every}
	if c.by != "" {
		field, err := ingest.ParseField(c.by)
		if err != nil {
			return answer{}, err
		}
		asked.By = []ingest.Field{field}
	}
	var counted ingest.Counted
	err := measured(func() (err error) {
		counted, err = w.counted.Count(ctx, organization, asked, ingest.MaxValues)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	counts := map[string]int64{}
	switch {
	case c.every > 0:
		for i, levels := range counted.Buckets {
			at := time.Unix(asked.FirstBucket(), 0).Add(time.Duration(i) * c.every)
			for level, n := range levels {
				if n > 0 {
					counts[bucketName(at, ingest.Severity(level).String())] = n //nolint:gosec // a level
				}
			}
		}
	case c.by != "":
		for _, value := range counted.Fields[0].Values {
			counts[value.Value] = value.Entries
		}
		if without := counted.Fields[0].Without; without > 0 {
			counts[""] = without
		}
	default:
		counts[""] = counted.Levels.Sum()
	}
	return answer{counts: counts}, nil
}

func bucketName(at time.Time, level string) string {
	return at.UTC().Format(time.RFC3339) + " " + level
}

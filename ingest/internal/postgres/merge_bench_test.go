package postgres_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/measure/entries"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A trickle is a day of a project that sends ten requests of one entry a
// second, each of which comes in a transaction of its own.
type trickle struct {
	b      *testing.B
	pool   *pgxpool.Pool
	store  *postgres.Store
	merger *postgres.Merger
	begins time.Time
	now    time.Time
	from   *entries.Generator
	sent   int
	bytes  int
}

// rareWord is among how many entries one has it.
const rareWord = 20_000

func newTrickle(b *testing.B) *trickle {
	b.Helper()
	t := &trickle{b: b, pool: pgtest.Open(b, postgres.Schema, postgres.Migrations()...), begins: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), from: entries.New(1)}
	t.now = t.begins
	clock, metrics := func() time.Time { return t.now }, prometheus.NewRegistry()
	t.store = postgres.NewStore(postgres.Config{Readers: t.pool, Limits: postgres.Limits{Bytes: 1 << 30, Time: time.Hour}, Clock: clock, Metrics: metrics})
	t.merger = postgres.NewMerger(postgres.MergerConfig{Store: t.store, Pool: t.pool, NewID: uuid.NewString, Clock: clock, Metrics: metrics})
	b.Cleanup(func() {
		families, _ := metrics.Gather()
		for _, f := range families {
			if f.GetName() == "weir_ingest_merged_bytes_total" {
				b.ReportMetric(f.Metric[0].Counter.GetValue()/float64(t.bytes), "rewrites")
			}
		}
	})
	return t
}

// block is that of one request; now and then one has a rare word.
func (t *trickle) block() postgres.Block {
	t.sent++
	at := t.now
	e := ingest.Stored{Place: ingest.Place{Time: ingest.InstantOf(at), Batch: uuid.New()}, ReceivedAt: at, Level: ingest.SeverityInfo, Environment: "prod"}
	if e.Text = t.from.Append(nil, at); t.sent%rareWord == 0 {
		e.Text = bytes.Replace(e.Text, []byte(`"message":"`), []byte(`"message":"quicksilver: `), 1)
	}
	t.bytes += len(e.Text)
	var builder ingest.Builder
	builder.Add(e)
	return postgres.Block{Block: builder.Build(), ID: uuid.NewString(), Organization: "org_1", Project: "prj_1", Retention: 90}
}

// send sends ten seconds' worth, and merges what is due then, as
// a Merger does all the time.
func (t *trickle) send(merge bool) {
	t.b.Helper()
	var blocks []postgres.Block
	for range 100 {
		blocks = append(blocks, t.block())
		t.now = t.now.Add(100 * time.Millisecond)
	}
	err := pg.InTxAsSystem(t.b.Context(), t.pool, func(tx pgx.Tx) error {
		return t.store.Keep(t.b.Context(), tx, blocks)
	})
	if err == nil && merge {
		err = t.merger.RunOnce(t.b.Context())
	}
	if err == nil && merge && t.now.Second() == 0 { // a day goes by in a minute: autovacuum would come once
		_, err = t.pool.Exec(t.b.Context(), `VACUUM blocks_90_20261121`)
	}
	if err != nil {
		t.b.Fatal(err)
	}
}

// measure reports what a day comes to, and how long its newest
// page and a search for rare words take.
func (t *trickle) measure() {
	t.b.Helper()
	var blocks, size int
	query := `SELECT count(*), pg_total_relation_size('blocks_90_20261121') FROM blocks_90_20261121`
	if err := t.pool.QueryRow(t.b.Context(), query).Scan(&blocks, &size); err != nil {
		t.b.Fatal(err)
	}
	t.b.ReportMetric(float64(blocks), "blocks")
	t.b.ReportMetric(float64(size)/(1<<20), "MB-on-disk")
	t.b.ReportMetric(float64(t.bytes)/(1<<20), "MB-of-text")
	ends := ingest.InstantOf(t.now)
	words, err := ingest.ParseQuery("quicksilver")
	if err != nil {
		t.b.Fatal(err)
	}
	for name, search := range map[string]ingest.Search{
		"newest": {Limit: 100},
		"hour":   {Limit: 100, To: &ingest.Instant{Seconds: t.begins.Unix() + 7*3600}},
		"words":  {Limit: 1000, Query: words, To: &ends},
	} {
		begun := time.Now()
		result, err := t.store.Search(t.b.Context(), "org_1", search)
		if err != nil || result.Incomplete || len(result.Found) == 0 || len(search.Query.WordHashes()) > 0 && len(result.Found) != t.sent/rareWord {
			t.b.Fatalf("%s: %d found, incomplete %t, %v", name, len(result.Found), result.Incomplete, err)
		}
		t.b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, name+"-ms")
	}
}

// BenchmarkTrickle sends a day in a trickle, without merges and
// with them: -benchtime 1x.
func BenchmarkTrickle(b *testing.B) {
	for _, merge := range []bool{false, true} {
		b.Run(fmt.Sprintf("merged=%t", merge), func(b *testing.B) {
			t := newTrickle(b)
			for b.Loop() {
				for t.now.Before(t.begins.AddDate(0, 0, 1)) {
					t.send(merge)
				}
			}
			if t.now = t.now.Add(3 * time.Hour); merge {
				testenv.Must(b, t.merger.RunOnce(b.Context()))
			}
			t.measure()
		})
	}
}

package erasure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// open returns a schema with a plain and a partitioned table, which
// hold a row for each day of some projects.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.OpenOwned(t, "erasuretest", pg.Partitions(), erasure.Migrations())
	system(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			CREATE TABLE things (organization text, project text, n int);
			CREATE TABLE days (organization text, project text, at timestamptz) PARTITION BY RANGE (at)`)
		for day := range 20 { // more than one transaction takes
			err = errors.Join(err, pg.EnsureDays(t.Context(), tx, "days", noon.AddDate(0, 0, day)))
		}
		for _, of := range [][2]string{{"acme", "shop"}, {"acme", "cart"}, {"other", "shop"}} {
			_, failed := tx.Exec(t.Context(), `INSERT INTO things SELECT $1, $2, n FROM generate_series(1, 25) n`, of[0], of[1])
			_, failed2 := tx.Exec(t.Context(), `INSERT INTO days SELECT $1, $2, $3::timestamptz + n * interval '1 day' FROM generate_series(0, 19) n, generate_series(1, 3)`, of[0], of[1], noon)
			err = errors.Join(err, failed, failed2)
		}
		return err
	})
	return pool
}

func system(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, fn))
}

// left counts the rows of both tables by organization and project.
func left(t *testing.T, pool *pgxpool.Pool) map[string]int {
	t.Helper()
	counts := map[string]int{}
	system(t, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT organization || '/' || project, count(*) FROM (
			SELECT organization, project FROM things UNION ALL SELECT organization, project FROM days) r GROUP BY 1`)
		if err != nil {
			return err
		}
		var of string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&of, &n}, func() error {
			counts[of] = n
			return nil
		})
		return err
	})
	return counts
}

func begun(t *testing.T, organization, project string) bus.Record {
	t.Helper()
	value, err := json.Marshal(contract.DeletionBegun{Organization: organization, Project: project, BegunAt: noon, GoneBy: noon.Add(time.Hour)})
	testenv.Must(t, err)
	return bus.Record{Value: value, Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeDeletionBegun)}}}
}

func consume(t *testing.T, pool *pgxpool.Pool, records ...bus.Record) {
	t.Helper()
	system(t, pool, func(tx pgx.Tx) error { return erasure.Consume(t.Context(), tx, records) })
}

func newEraser(t *testing.T, pool *pgxpool.Pool, brokers []string, tables ...erasure.Table) *erasure.Eraser {
	t.Helper()
	out, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	t.Cleanup(func() { _ = out.Close() })
	return erasure.New(erasure.Config{
		Module: "test", Tables: tables, Pool: pool, Bus: out, Clock: func() time.Time { return noon }, Metrics: prometheus.NewRegistry(),
		Logger: testenv.Logger(t), Batch: 10,
	})
}

// A deletion is erased in small transactions by any replica, and what
// was removed is published. All else stays.
func TestErases(t *testing.T) {
	pool, brokers := open(t), kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	largest, crash := int64(0), errors.New("a crash")
	counted := func(table erasure.Table) erasure.Table {
		erase := table.Erase
		table.Erase = func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
			removed, next, err := erase(ctx, tx, of, place, limit)
			if largest = max(largest, removed); crash != nil && removed > 0 {
				err, crash = crash, nil
			}
			return removed, next, err
		}
		return table
	}
	tables := []erasure.Table{counted(erasure.Rows("things", erasure.OfProject)), erasure.Partitions("days", erasure.OfProject)}
	consume(t, pool, begun(t, "acme", "shop"), begun(t, "other", ""), bus.Record{}, begun(t, "acme", "shop"))
	if err := newEraser(t, pool, brokers, tables...).RunOnce(t.Context()); err == nil {
		t.Error("the first is not cut short")
	}
	testenv.Must(t, newEraser(t, pool, brokers, tables...).RunOnce(t.Context()))
	if got := left(t, pool); len(got) != 1 || got["acme/cart"] != 85 {
		t.Errorf("left: %v", got)
	}
	if largest > 10 {
		t.Errorf("a transaction removed %d rows", largest)
	}
	var published []string
	for _, record := range bustest.ReadAll(t, brokers, contract.TopicErasures) {
		var erased contract.Erased
		testenv.Must(t, json.Unmarshal(record.Value, &erased))
		published = append(published, fmt.Sprint(string(record.Key), " ", erased.Module, " ", erased.Removed))
	}
	slices.Sort(published)
	want := []string{"organization/other/test test map[days:60 things:25]", "project/shop/test test map[days:60 things:25]"}
	if !slices.Equal(published, want) {
		t.Errorf("published %q, want %q", published, want)
	}
}

// A deletion that cannot be erased yet waits, and delays no other.
func TestNotYet(t *testing.T) {
	pool := open(t)
	table := erasure.Rows("things", erasure.OfProject)
	erase := table.Erase
	table.Erase = func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
		if of.Organization == "acme" {
			return 0, "", erasure.ErrNotYet
		}
		return erase(ctx, tx, of, place, limit)
	}
	brokers := kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	consume(t, pool, begun(t, "acme", ""), begun(t, "other", ""))
	testenv.Must(t, newEraser(t, pool, brokers, table).RunOnce(t.Context()))
	if got := left(t, pool); got["acme/shop"] != 85 || got["other/shop"] != 60 {
		t.Errorf("left: %v", got)
	}
}

// A deletion that had to wait goes on beside a large one, not after it.
func TestSmallDeletionBesideALargeOne(t *testing.T) {
	pool, brokers := open(t), kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	var turns []string
	table := erasure.Rows("things", erasure.OfProject)
	erase := table.Erase
	table.Erase = func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
		if turns = append(turns, of.Organization); len(turns) == 2 {
			return 0, "", erasure.ErrNotYet
		}
		return erase(ctx, tx, of, place, limit)
	}
	consume(t, pool, begun(t, "acme", ""), begun(t, "other", ""))
	testenv.Must(t, newEraser(t, pool, brokers, table).RunOnce(t.Context()))
	if want := []string{"acme", "other", "acme", "other"}; len(turns) < 4 || !slices.Equal(turns[:4], want) {
		t.Errorf("turns: %q", turns)
	}
}

// Large and small deletions take turns, also if the small one begins later.
func TestDeletionsTakeTurns(t *testing.T) {
	pool, brokers := open(t), kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	late := begun(t, "late", "")
	var turns []string
	table := erasure.Rows("things", erasure.OfProject)
	erase := table.Erase
	table.Erase = func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
		if turns = append(turns, of.Organization); len(turns) == 3 {
			consume(t, pool, late)
		}
		return erase(ctx, tx, of, place, limit)
	}
	consume(t, pool, begun(t, "acme", ""), begun(t, "other", ""))
	testenv.Must(t, newEraser(t, pool, brokers, table).RunOnce(t.Context()))
	if want := []string{"acme", "other", "acme", "other", "acme", "late", "other"}; len(turns) < 9 || !slices.Equal(turns[:7], want) {
		t.Errorf("turns: %q", turns)
	}
	if got := left(t, pool); got["acme/shop"]+got["other/shop"] != 120 { // days of both
		t.Errorf("left: %v", got)
	}
}

// A row added behind the pass, which blocks the deletion of another, is
// erased by the next pass.
func TestRowAddedBehindThePass(t *testing.T) {
	pool := open(t)
	system(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE owners (project text PRIMARY KEY, organization text); INSERT INTO owners VALUES ('shop', 'acme');
			CREATE TABLE owned (organization text, project text REFERENCES owners)`)
		return err
	})
	owned, late := erasure.Rows("owned", erasure.OfProject), true
	erase := owned.Erase
	owned.Erase = func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
		removed, next, err := erase(ctx, tx, of, place, limit)
		if late && err == nil {
			late = false
			_, err = tx.Exec(ctx, `INSERT INTO owned VALUES ('acme', 'shop')`)
		}
		return removed, next, err
	}
	brokers := kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	consume(t, pool, begun(t, "acme", "shop"))
	eraser := newEraser(t, pool, brokers, owned, erasure.Rows("owners", erasure.OfProject))
	if err := eraser.RunOnce(t.Context()); err == nil {
		t.Error("nothing came behind the pass")
	}
	if err := eraser.RunOnce(t.Context()); err != nil {
		t.Error(err)
	}
}

// A deletion does not begin while a transaction that has not seen it
// still writes; later transactions see it.
func TestDeletionWaitsForWriters(t *testing.T) {
	pool := open(t)
	writer, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
	testenv.Must(t, pg.AsSystem(t.Context(), writer))
	logs := []contract.LogsAccepted{{Organization: "acme", Project: "shop"}}
	if before, err := erasure.FindDeletedIn(t.Context(), writer, logs); err != nil || before.Has("acme", "shop") {
		t.Fatalf("before: %v, %v", before, err)
	}
	began, record := make(chan error, 1), begun(t, "acme", "")
	go func() {
		began <- pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error { return erasure.Consume(t.Context(), tx, []bus.Record{record}) })
	}()
	testenv.Eventually(t, func() error { return waits(t, pool) })
	select {
	case err := <-began:
		t.Fatalf("the deletion began while somebody wrote: %v", err)
	default:
	}
	testenv.Must(t, writer.Commit(t.Context()))
	testenv.Must(t, <-began)
	system(t, pool, func(tx pgx.Tx) error {
		after, err := erasure.FindDeletedIn(t.Context(), tx, logs)
		if !after.Has("acme", "shop") || !after.Has("acme", "cart") || after.Has("other", "shop") {
			t.Errorf("after: %v", after)
		}
		return err
	})
}

// waits returns nil once another transaction waits for the lock.
func waits(t *testing.T, pool *pgxpool.Pool) error {
	t.Helper()
	var waiting bool
	err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waiting)
	if err == nil && !waiting {
		err = errors.New("nobody waits yet")
	}
	return err
}

// Parked records of a deleted project are emptied; one with a header
// that is no text does not stop that.
func TestParked(t *testing.T) {
	pool := pgtest.Open(t, "erasureparkedtest", bus.Migrations())
	system(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason)
			SELECT 'acme', 'test', 'logs', 0, n, now(), ARRAY['ce_id', 'ce_project'], ARRAY['x'::bytea, project], 'test'
			  FROM unnest(ARRAY['shop'::bytea, 'cart', '\xff']) WITH ORDINALITY AS p (project, n)`)
		if err != nil {
			return err
		}
		removed, _, err := erasure.Parked().Erase(t.Context(), tx, erasure.Deletion{Organization: "acme", Project: "shop"}, "", 10)
		if err != nil || removed != 1 {
			t.Errorf("of a project: %d, %v", removed, err)
		}
		removed, _, err = erasure.Parked().Erase(t.Context(), tx, erasure.Deletion{Organization: "acme"}, "", 10)
		if removed != 2 {
			t.Errorf("of the organization: %d", removed)
		}
		return err
	})
}

// Deletions are remembered for long enough, and not forever.
func TestRetention(t *testing.T) {
	for months, valid := range map[int]bool{0: true, 3: true, 1200: true, -1: false, 2: false, 1201: false} {
		if err := (erasure.Retention{DeletionsMonths: months}).Validate(); (err == nil) != valid {
			t.Errorf("%d months: %v", months, err)
		}
	}
}

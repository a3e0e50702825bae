package eventstorepg_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/eventstore/eventstoretest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

type (
	event    = eventstoretest.Counted
	recorded = eventstore.Recorded[event]
	store    = eventstorepg.Store[event]
)

// PostgreSQL keeps the promises of every store.
func TestStore(t *testing.T) {
	url := postgrestest.URL(t)
	eventstoretest.Run(t, func(t *testing.T, project func([]recorded) error) eventstoretest.Subject {
		pool, store := open(t, url, project)
		return eventstoretest.Subject{
			Store: store,
			ReadAll: func(ctx context.Context, after eventstore.Cursor, limit int) ([]recorded, error) {
				return readAll(ctx, pool, store, after, limit)
			},
		}
	})
}

// A transaction that drew its position early and commits late must not be
// overtaken: a reader already past its position would never publish it.
func TestReadAllMissesNoLateCommit(t *testing.T) {
	pool, store := open(t, postgrestest.URL(t), nil)
	early, late := stream("early"), stream("late")
	slow := begin(t, pool)
	testenv.Must(t, store.AppendTx(t.Context(), slow, early, 0, nil, event{By: 1}))
	appended := make(chan error, 1)
	go func() { appended <- store.Append(t.Context(), late, 0, nil, event{By: 2}) }()
	testenv.Eventually(t, func() error { return someoneWaits(t.Context(), pool) })
	if got, err := readAll(t.Context(), pool, store, 0, 10); err != nil || len(got) != 0 {
		t.Fatalf("while an older transaction runs: read %d events, %v; want none", len(got), err)
	}
	testenv.Must(t, slow.Commit(t.Context()))
	testenv.Must(t, <-appended)
	got, err := readAll(t.Context(), pool, store, 0, 10)
	if err != nil || len(got) != 2 || got[0].Stream != early || got[1].Stream != late {
		t.Fatalf("after its commit: read %+v, %v", got, err)
	}
}

// Appended events can be read at once, whatever long transactions the
// server runs: a revocation does not wait for another module's bulk load.
func TestReadAllIgnoresLongTransactions(t *testing.T) {
	pool, store := open(t, postgrestest.URL(t), nil)
	foreign := begin(t, pool)
	if _, err := foreign.Exec(t.Context(), `CREATE TABLE bulk (n int); INSERT INTO bulk VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, store.Append(t.Context(), stream("key"), 0, nil, event{By: 1}))
	if got, err := readAll(t.Context(), pool, store, 0, 10); err != nil || len(got) != 1 {
		t.Errorf("while a foreign transaction runs: read %d events, %v; want 1", len(got), err)
	}
}

// A rollback leaves a gap in the positions, and none in the events read.
func TestReadAllPassesGaps(t *testing.T) {
	pool, store := open(t, postgrestest.URL(t), nil)
	lost := begin(t, pool)
	testenv.Must(t, store.AppendTx(t.Context(), lost, stream("lost"), 0, nil, event{By: 1}))
	testenv.Must(t, lost.Rollback(t.Context()))
	testenv.Must(t, store.Append(t.Context(), stream("kept"), 0, nil, event{By: 2}))
	got, err := readAll(t.Context(), pool, store, 0, 10)
	if err != nil || len(got) != 1 || got[0].Stream != stream("kept") {
		t.Errorf("read %+v, %v", got, err)
	}
}

// Row level security hides a foreign stream even from a query without WHERE.
func TestEventsAreRowSecured(t *testing.T) {
	pool, store := open(t, postgrestest.URL(t), nil)
	testenv.Must(t, store.Append(t.Context(), stream("counter"), 0, nil, event{By: 1}))
	for organization, want := range map[string]int{"org_a": 1, "org_b": 0} {
		var got int
		err := pg.ReadAs(t.Context(), pool, pg.Organization(organization), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("%s sees %d events, %v; want %d", organization, got, err, want)
		}
	}
	var got int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&got); err != nil || got != 0 {
		t.Errorf("a connection that acts as nobody sees %d events, %v; want none", got, err)
	}
}

// One organization's events are read page by page in the order of
// commits, whatever others append.
func TestReadOf(t *testing.T) {
	pool, store := open(t, postgrestest.URL(t), nil)
	foreign := eventstore.Stream{Organization: "org_b", Name: "counter"}
	for version, appended := range []eventstore.Stream{stream("b"), foreign, stream("a"), stream("c")} {
		testenv.Must(t, store.Append(t.Context(), appended, 0, nil, event{By: version}))
	}
	var got []string
	var after eventstore.Cursor
	for range 4 {
		err := pg.ReadAs(t.Context(), pool, "org_a", func(tx pgx.Tx) error {
			page, err := store.ReadOf(t.Context(), tx, "org_a", after, 2)
			for _, r := range page {
				got, after = append(got, r.Stream.Name), r.Cursor
			}
			return err
		})
		testenv.Must(t, err)
	}
	if !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("read %q", got)
	}
}

// A publisher of events skips private ones of later versions; a
// decision does not.
func TestUnknownEvents(t *testing.T) {
	url := postgrestest.URL(t)
	pool, store := open(t, url, nil)
	later := eventstoretest.Codec()
	later.Encode = func(event) (string, []byte, error) { return "test.v2.counted", []byte("{}"), nil }
	later.Private = func(e event) bool { return e.By == 1 }
	newer := eventstorepg.New(pool, later, nil)
	testenv.Must(t, newer.Append(t.Context(), stream("counter"), 0, nil, event{By: 1}, event{By: 2}))
	first, err := readAll(t.Context(), pool, store, 0, 1)
	if err != nil || len(first) != 1 || !first[0].Unknown || first[0].Version != 1 {
		t.Errorf("a private event is read as %+v, %v", first, err)
	}
	if second, err := readAll(t.Context(), pool, store, first[0].Cursor, 1); err == nil {
		t.Errorf("an event that is not private is read as %+v", second)
	}
	if history, err := store.Read(t.Context(), stream("counter")); err == nil {
		t.Errorf("the stream is read as %+v", history)
	}
}

func stream(name string) eventstore.Stream {
	return eventstore.Stream{Organization: "org_a", Name: name}
}

// open returns a store in its own empty schema.
func open(t *testing.T, url string, project func([]recorded) error) (*pgxpool.Pool, *store) {
	t.Helper()
	schema := schemaFor(t)
	pool, err := pg.Open(t.Context(), url, schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	testenv.Must(t, pg.Migrate(t.Context(), pool, schema, eventstorepg.Migrations()))
	return pool, eventstorepg.New(pool, eventstoretest.Codec(), projection(project))
}

func projection(project func([]recorded) error) eventstorepg.Projection[event] {
	if project == nil {
		return nil
	}
	return func(_ context.Context, _ pgx.Tx, events []recorded) error { return project(events) }
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	testenv.Must(t, pg.AsOrganization(t.Context(), tx, "org_a"))
	return tx
}

func readAll(ctx context.Context, pool *pgxpool.Pool, store *store, after eventstore.Cursor, limit int) (events []recorded, err error) {
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		events, err = store.ReadAll(ctx, tx, after, limit)
		return err
	})
	return events, err
}

// someoneWaits fails unless an append of this database waits for its turn.
func someoneWaits(ctx context.Context, pool *pgxpool.Pool) error {
	var waiting int
	err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
	if err == nil && waiting == 0 {
		err = errors.New("nobody waits for a turn")
	}
	return err
}

// schemaFor returns a schema name for the test: a digest, because
// PostgreSQL cuts names at 63 bytes.
func schemaFor(t *testing.T) string {
	return fmt.Sprintf("events_%x", sha256.Sum256([]byte(t.Name())))[:39]
}

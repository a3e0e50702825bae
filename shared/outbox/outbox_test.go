package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

const schema = "outboxtest"

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, schema, bus.Migrations(), outbox.Migrations())
}

// as runs fn in a transaction that sees all organizations.
func as(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, fn))
}

func save(t *testing.T, pool *pgxpool.Pool, ids ...string) {
	t.Helper()
	as(t, pool, func(tx pgx.Tx) error { return saveIn(t, tx, ids...) })
}

func saveIn(t *testing.T, tx pgx.Tx, ids ...string) error {
	var facts []outbox.Fact
	for _, id := range ids {
		facts = append(facts, outbox.Fact{Organization: "acme", ID: id, Type: "test", At: time.Unix(1, 0), Body: []byte(`{"n": 1}`)})
	}
	var batch pgx.Batch
	outbox.Queue(&batch, facts)
	return tx.SendBatch(t.Context(), &batch).Close()
}

// read returns the ids of the facts after a place, and where they end.
func read(t *testing.T, pool *pgxpool.Pool, after relay.Cursor, limit int) (ids []string, end relay.Cursor) {
	t.Helper()
	end = after
	as(t, pool, func(tx pgx.Tx) error {
		found, err := outbox.Outbox{Topic: "facts", Source: "test"}.Read(t.Context(), tx, after, limit)
		for _, out := range found {
			ids, end = append(ids, out.Message.UUID), out.Cursor
			if out.Topic != "facts" || out.Message.Metadata.Get(bus.KeyMetadata) != "acme" || string(out.Message.Payload) != `{"n": 1}` {
				t.Errorf("read %+v", out)
			}
		}
		return err
	})
	return ids, end
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// A fact is read as soon as it is committed, whatever long transactions
// the server runs.
func TestForeignTransaction(t *testing.T) {
	pool := open(t)
	foreign, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = foreign.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := foreign.Exec(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	save(t, pool, "b", "a")
	save(t, pool, "a", "c")
	first, cursor := read(t, pool, relay.Cursor{}, 2)
	expect(t, first, "b", "a")
	rest, _ := read(t, pool, cursor, 10)
	expect(t, rest, "c")
}

// However transactions overlap, a concurrent reader gets each committed
// fact once, those of a writer in order, and nothing of a rollback.
func TestOrderOfCommits(t *testing.T) {
	const writers, each = 8, 40
	pool := open(t)
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for n := range each {
				if err := write(t, pool, writer, n); err != nil {
					t.Errorf("writer %d, fact %d: %v", writer, n, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	next := make([]int, writers)
	for cursor, ended := (relay.Cursor{}), false; ; {
		select {
		case <-done:
			ended = true
		default:
		}
		var ids []string
		ids, cursor = read(t, pool, cursor, 7)
		for _, id := range ids {
			var writer, n int
			if _, err := fmt.Sscanf(id, "%d-%d", &writer, &n); err != nil || n != next[writer] {
				t.Fatalf("read %q (%v) where %d is due", id, err, next[writer])
			}
			next[writer] = n + 1 + (n+2)%5/4 // every fifth is rolled back
		}
		if ended && len(ids) == 0 {
			break
		}
	}
	for writer, n := range next {
		if n != each {
			t.Errorf("of writer %d facts up to %d are read", writer, n)
		}
	}
}

// write saves the nth fact of a writer in a transaction that began well
// before, and rolls every fifth back.
func write(t *testing.T, pool *pgxpool.Pool, writer, n int) error {
	rollback := errors.New("rolled back")
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT pg_current_xact_id(), pg_sleep($1)`, float64((writer+n)%3)/1000); err != nil {
			return err
		}
		if err := saveIn(t, tx, fmt.Sprintf("%d-%d", writer, n)); err != nil || n%5 != 3 {
			return err
		}
		return rollback
	})
	if errors.Is(err, rollback) {
		return nil
	}
	return err
}

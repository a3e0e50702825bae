package outbox_test

import (
	"fmt"
	"slices"
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
	return pgtest.Open(t, schema, outbox.Migrations())
}

// as runs fn in a transaction that sees all organizations.
func as(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, pool *pgxpool.Pool, ids ...string) {
	t.Helper()
	as(t, pool, func(tx pgx.Tx) error { return saveIn(t, tx, ids...) })
}

// settle waits until no transaction is open that was there before the facts: others may work on the same server.
func settle(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() error {
		var held int
		as(t, pool, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM facts WHERE transaction >= pg_snapshot_xmin(pg_current_snapshot())
				AND transaction < pg_snapshot_xmax(pg_current_snapshot())`).Scan(&held)
		})
		if held > 0 {
			return fmt.Errorf("%d facts are held back", held)
		}
		return nil
	})
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

// read returns the ids of the facts behind after, and where they end.
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

// Each fact is read once, in the order of the commits. One of a transaction that is still open holds back those that were
// written after it, for it would come before them.
func TestOrderOfCommits(t *testing.T) {
	pool := open(t)
	save(t, pool, "b", "a")
	save(t, pool, "a", "c")
	settle(t, pool)
	first, cursor := read(t, pool, relay.Cursor{}, 2)
	expect(t, first, "b", "a")
	as(t, pool, func(tx pgx.Tx) error {
		err := saveIn(t, tx, "d")
		save(t, pool, "e")
		rest, end := read(t, pool, cursor, 10)
		expect(t, rest, "c")
		cursor = end
		return err
	})
	settle(t, pool)
	rest, _ := read(t, pool, cursor, 10)
	expect(t, rest, "d", "e")
}

// Where a schema was moved to another cluster, whose transactions count from the start, what was left to publish is published,
// and so is what is new; then nothing more.
func TestMovedSchema(t *testing.T) {
	const elsewhere = 1 << 40
	pool := open(t)
	save(t, pool, "said", "left")
	as(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE facts SET transaction = '1099511627776'`)
		return err
	})
	cursor := relay.Cursor{Transaction: elsewhere, Position: 1}
	save(t, pool, "new")
	settle(t, pool)
	for _, want := range [][]string{{"left"}, {"new"}, nil} {
		var ids []string
		ids, cursor = read(t, pool, cursor, 10)
		expect(t, ids, want...)
	}
	save(t, pool, "newer")
	settle(t, pool)
	ids, _ := read(t, pool, cursor, 10)
	expect(t, ids, "newer")
}

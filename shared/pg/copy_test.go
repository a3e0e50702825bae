package pg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Copied rows are read back unchanged: each type, with its limits and NULL.
func TestCopiedRowsAreRead(t *testing.T) {
	type value struct {
		Text  string
		Small int16
		Int   int32
		Big   int64
		ID    [16]byte
		At    time.Time
		Day   time.Time
		None  *string
	}
	rows := []value{
		{"", math.MinInt16, math.MinInt32, math.MinInt64, uuid.Nil, time.Date(1970, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), nil},
		{"\"ä\t\n\\.", math.MaxInt16, math.MaxInt32, math.MaxInt64, uuid.Max, day, day.Truncate(24 * time.Hour), nil},
		{"x", 0, -1, 1, uuid.New(), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), nil},
	}
	const columns = `"Text", small, int, big, id, at, day, none`
	var found []value
	err := pg.InTx(t.Context(), open(t), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `CREATE TABLE copied ("Text" text, small smallint, int int, big bigint, id uuid, at timestamptz, day date, none text)`); err != nil {
			return err
		}
		err := pg.Copy(t.Context(), tx, "copied", []string{"Text", "small", "int", "big", "id", "at", "day", "none"}, len(rows), func(i int, row *pg.CopyRow) {
			row.Text(rows[i].Text)
			row.Int16(rows[i].Small)
			row.Int32(rows[i].Int)
			row.Int64(rows[i].Big)
			row.UUID(rows[i].ID)
			row.Time(rows[i].At)
			row.Date(rows[i].At)
			row.Null()
		})
		if err != nil {
			return err
		}
		read, err := tx.Query(t.Context(), `SELECT `+columns+` FROM copied ORDER BY ctid`)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(read, pgx.RowToStructByPos[value])
		return err
	})
	if err != nil || len(found) != len(rows) {
		t.Fatalf("%d rows, %v", len(found), err)
	}
	for i := range found {
		found[i].At, found[i].Day = found[i].At.UTC(), found[i].Day.UTC()
		if found[i] != rows[i] {
			t.Errorf("row %d is %+v, want %+v", i, found[i], rows[i])
		}
	}
}

// All rows arrive, whether one read takes them all or many do, also a
// row longer than a read.
func TestCopiesArriveWhole(t *testing.T) {
	for name, rows := range map[string][]string{
		"none": {},
		"many": slices.Repeat([]string{"", "x"}, 2500),
		"long": {"x", strings.Repeat("x", 200_000), "y"},
	} {
		t.Run(name, func(t *testing.T) {
			err := pg.InTx(t.Context(), open(t), func(tx pgx.Tx) error {
				if err := copyTexts(t.Context(), tx, len(rows), func(i int) string { return rows[i] }); err != nil {
					return err
				}
				read, err := tx.Query(t.Context(), `SELECT text FROM copied ORDER BY n`)
				if err != nil {
					return err
				}
				found, err := pgx.CollectRows(read, pgx.RowTo[string])
				if !slices.Equal(found, rows) {
					t.Errorf("%d rows differ from the %d copied", len(found), len(rows))
				}
				return err
			})
			testenv.Must(t, err)
		})
	}
}

// copyTexts copies texts into a table that takes only x and y.
func copyTexts(ctx context.Context, tx pgx.Tx, n int, text func(i int) string) error {
	if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE copied (n int, text text CHECK (text ~ '^[xy]*$')) ON COMMIT DROP`); err != nil {
		return err
	}
	return pg.Copy(ctx, tx, "copied", []string{"n", "text"}, n, func(i int, row *pg.CopyRow) {
		row.Int32(int32(i)) //nolint:gosec // few
		row.Text(text(i))
	})
}

// A row that the server refuses is an error; the connection stays usable.
func TestRefusedCopiesFail(t *testing.T) {
	pool := open(t)
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		return copyTexts(t.Context(), tx, 50_000, func(i int) string { return strings.Repeat("x", i%100) + strings.Repeat("z", i/25_000) })
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23514" {
		t.Errorf("error %v, want that of the constraint", err)
	}
	if opened := pool.Stat().NewConnsCount(); opened != 1 || pool.Ping(t.Context()) != nil {
		t.Errorf("%d connections were opened", opened)
	}
}

// A panic while a row is encoded becomes one of Copy's caller, with its
// place; nothing is copied.
func TestPanicsOfRowsAreThoseOfCopy(t *testing.T) {
	pool := open(t)
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "no row 3000") || !strings.Contains(v, "copy_test.go") {
			t.Errorf("recovered %v", v)
		}
		if err := pool.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		return copyTexts(t.Context(), tx, 5000, func(i int) string {
			if i == 3000 {
				panic("no row 3000")
			}
			return "x"
		})
	})
	t.Errorf("no panic; error %v", err)
}

// After a lost connection no row is encoded once Copy has returned: its
// caller may change the rows.
func TestNoRowIsEncodedBehindACopy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var encoding, returned atomic.Bool
	err := pg.InTx(t.Context(), open(t), func(tx pgx.Tx) error {
		err := copyTexts(ctx, tx, 100_000, func(i int) string {
			encoding.Store(true)
			defer encoding.Store(false)
			if i == 50_000 {
				cancel()
				<-tx.Conn().PgConn().CleanupDone()
				for range 1000 {
					runtime.Gosched() // lets the waiter for Copy run
				}
			}
			if returned.Load() {
				t.Errorf("row %d is encoded behind the copy", i)
			}
			return "x"
		})
		returned.Store(true)
		if encoding.Load() {
			t.Error("a row is still encoded")
		}
		return err
	})
	if err == nil {
		t.Error("a copy without a connection succeeds")
	}
}

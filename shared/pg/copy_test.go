package pg_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// What is copied is what is read: of each type, at its ends, and
// where rows have nothing.
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

package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A tail has everything booked at an instant or later, and at most
// about a page booked before.
func TestTailsBeginWithTheirBookings(t *testing.T) {
	pool, day := pgtest.Open(t, Schema, Migrations()...), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	const bookings, each = 40, 250
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if err := EnsureDays(t.Context(), tx, day); err != nil {
			return err
		}
		if none, err := tailOf(t.Context(), tx, day, day); err != nil || none.first.BlockNumber != 0 {
			t.Errorf("of an empty day: %+v, error %v", none, err)
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO transfers (organization, effective_at, source, partition, "offset", line, period_start, from_account, to_account,
				amount, entries, reason, project, key, event, booked_at)
			SELECT 'acme', $1, 0, 0, n, 0, $1, 1, 2, 1, 1, 2, 'shop', 'key', 'event', $1::timestamptz + n / $2 * interval '1 minute'
			FROM generate_series(0, $3 - 1) n`, day, each, bookings*each)
		if err != nil {
			return err
		}
		for minute := range bookings {
			at := day.Add(time.Duration(minute) * time.Minute)
			end, err := tailOf(t.Context(), tx, day, at)
			if err != nil {
				return err
			}
			var wanted, others int
			err = tx.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE booked_at >= $2), count(*) FILTER (WHERE booked_at < $2) FROM `+end.partition+
				` WHERE ctid >= $1`, end.first, at).Scan(&wanted, &others)
			if page := 8192 / 100; err != nil || wanted != (bookings-minute)*each || others > page {
				t.Errorf("booked since minute %d: %d of %d are in the tail, with %d others; error %v", minute, wanted, (bookings-minute)*each, others, err)
			}
		}
		return nil
	})
	testenv.Must(t, err)
}

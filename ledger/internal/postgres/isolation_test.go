package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

// A transaction of one organization can neither see nor write another's rows.
func TestIsolation(t *testing.T) {
	l := ledgertest.New(t)
	for _, organization := range []string{"acme", "evil"} {
		l.Start(t, organization, ledger.Indie)
		l.Book(t, l.NewCharge(organization, 60))
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			var batch pgx.Batch
			outbox.Queue(&batch, []outbox.Fact{{Organization: organization, ID: "threshold", Type: "reached", At: l.Now(), Body: []byte(`{}`)}})
			return tx.SendBatch(ctx, &batch).Close()
		})
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			tally := ledger.Tally{Organization: organization, Process: "run", Sequence: 1, At: l.Now()}
			refusal := ledger.Refusal{Organization: organization, Requests: 1, Cause: ledger.Cause{Event: "req", At: l.Now()}}
			_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal})
			return errors.Join(err, l.Booking.Count(ctx, tx, l.Now(), []ledger.Tally{tally}))
		})
	}
	for _, table := range []string{"organizations", "books", "transfers", "usage_days", "usage_hours", "tallies", "refusals", "facts", "unpublished"} {
		l.Read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
			var foreign, own int
			err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE organization <> 'evil'), count(*) FROM `+table).Scan(&foreign, &own)
			if foreign != 0 || own == 0 {
				t.Errorf("%s shows %d rows of others among %d", table, foreign, own)
			}
			return err
		})
	}
	l.Read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
		if o, found, err := postgres.LoadOrganization(ctx, tx, "acme"); err != nil || found {
			t.Errorf("found %+v, error %v", o, err)
		}
		return nil
	})
	err := pg.InTx(t.Context(), l.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "evil"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE books SET organization = 'acme'`)
		return err
	})
	if err == nil {
		t.Error("a row was moved to another organization")
	}
}

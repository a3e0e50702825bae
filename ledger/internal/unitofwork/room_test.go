package unitofwork_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// The decisions about an organization are limited in each period.
func TestDecisionsAreBounded(t *testing.T) {
	l := ledgertest.Acme(t)
	adjust := func() error {
		_, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, -1, "", time.Time{})
		return err
	}
	decideOften(t, l, ledger.MaxDecisions) // the first began the plan two periods before
	if err := adjust(); err != nil {
		t.Fatal(err)
	}
	var full ledger.LimitReached
	if err := adjust(); !errors.As(err, &full) || full.Limit != ledger.MaxDecisions {
		t.Errorf("error %v, want LimitReached", err)
	}
	l.SetClock(ledgertest.November.AddDate(0, 1, 0))
	l.AdvanceAll(t)
	if err := adjust(); err != nil {
		t.Errorf("in the next period: %v", err)
	}
}

// decideOften makes so many decisions about acme now.
func decideOften(t *testing.T, l *ledgertest.Ledger, decisions int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO events (organization, stream, version, name, data, metadata)
			SELECT 'acme', 'decisions', n, 'ledger.v1.adjusted', '{}', json_build_object('at', $2::timestamptz)
			FROM organizations, generate_series(decisions + 1, $1) n WHERE organization = 'acme'`, decisions, l.Now())
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE organizations SET decisions = $1 WHERE organization = 'acme'`, decisions)
		}
		return err
	})
}

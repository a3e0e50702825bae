package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/testenv"
)

// events reads the outbox once no transaction of the server is open that was there before them.
func (d *desk) events(t testing.TB) (events []bus.Outgoing) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() (err error) {
		var held int
		d.as(t, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT count(*) FROM facts WHERE transaction >= pg_snapshot_xmin(pg_current_snapshot())`).Scan(&held)
		})
		if held > 0 {
			err = fmt.Errorf("%d events are held back", held)
		}
		return err
	})
	d.as(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		events, err = outbox.Outbox{}.Read(ctx, tx, bus.Cursor{}, 1000)
		return err
	})
	return events
}

func (d *desk) round(t testing.TB) (round postgres.Round) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		round, err = d.NextRound(ctx, tx)
		return err
	})
	return round
}

func (d *desk) markPublished(t testing.TB, round postgres.Round) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error { return d.MarkPublished(ctx, tx, round) })
}

// What changes after a round was read stays due when that round is noted as published; versions only grow.
func TestRoundsMissNothing(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	first := d.round(t)
	d.book(t, d.charge("acme", 10))
	d.markPublished(t, first)
	second := d.round(t)
	if len(second.Accounts) != 1 || second.Accounts[0].Used != 10 || second.Accounts[0].Version <= first.Accounts[0].Version {
		t.Errorf("after %+v came %+v", first, second)
	}
	d.markPublished(t, second)
	if third := d.round(t); len(third.Accounts) != 0 {
		t.Errorf("nothing happened, but due is %+v", third)
	}
}

// Readers ignore a version below one that they have. A schema that was dropped and filled again from the log is above the
// one before: its versions start at the time, and no ledger publishes a million states a second.
func TestVersionsOutliveTheSchema(t *testing.T) {
	before := time.Now().UnixMicro()
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	if version := d.round(t).Accounts[0].Version; version < before || version > time.Now().Add(time.Minute).UnixMicro() {
		t.Errorf("version %d, want one of the time %d", version, before)
	}
}

// Other terms of a tier make every account due once, with the new requests per minute and next quota.
func TestNewTermsRepublish(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	republish := func() []int64 {
		d.as(t, d.RepublishOnNewTerms)
		round := d.round(t)
		d.markPublished(t, round)
		var next []int64
		for _, account := range round.Accounts {
			next = append(next, account.NextQuota)
		}
		return next
	}
	republish()
	if due := republish(); len(due) != 0 {
		t.Errorf("the same terms made accounts due: %v", due)
	}
	d.Tiers[ledger.Indie] = ledger.Terms{Quota: 500, RequestsPerMinute: 7}
	if due := republish(); len(due) != 1 || due[0] != 500 {
		t.Errorf("next quotas %v, want 500", due)
	}
}

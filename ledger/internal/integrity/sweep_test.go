package integrity_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/testenv"
)

// What an organization, its last decision or statement was changed to is
// found by the running check once half a minute has passed, and counted.
func TestWhatWasDecidedIsComparedTwiceAMinute(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Start(t, "idle", ledger.Indie)
	checker := integrity.NewChecker(integrity.CheckerConfig{
		Pool: l.Pool, Kept: ledger.DefaultRetention(), Clock: l.Now, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	found := func() (all []string) {
		t.Helper()
		before := len(checker.Report().Violations)
		if err := checker.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, v := range checker.Report().Violations[before:] {
			all = append(all, v.Invariant)
		}
		return all
	}
	if all := found(); len(all) > 0 {
		t.Fatalf("found %q", all)
	}
	for _, tampered := range []struct{ with, back, want string }{
		{`UPDATE organizations SET plans = replace(plans::text, 'indie', 'scale')::jsonb`,
			`UPDATE organizations SET plans = replace(plans::text, 'scale', 'indie')::jsonb`, ledger.StandingIsDecided},
		{`UPDATE organizations SET suspended = true WHERE organization = 'idle'`,
			`UPDATE organizations SET suspended = false WHERE organization = 'idle'`, ledger.StandingIsDecided},
		{`UPDATE organizations SET closed_through = closed_through - interval '1 month' WHERE organization = 'acme'`,
			`UPDATE organizations SET closed_through = closed_through + interval '1 month' WHERE organization = 'acme'`, ledger.StandingIsDecided},
		{`UPDATE events SET metadata = replace(metadata::text, 'time', 'someone')::json`,
			`UPDATE events SET metadata = replace(metadata::text, 'someone', 'time')::json`, ledger.DecisionsFollow},
		{`CREATE TABLE aside AS SELECT * FROM statements WHERE number = 2; DELETE FROM statements WHERE number = 2`,
			`INSERT INTO statements SELECT * FROM aside; DROP TABLE aside`, ledger.StatementsFollow},
		{`CREATE TABLE aside AS SELECT * FROM statements; DELETE FROM statements`,
			`INSERT INTO statements SELECT * FROM aside; DROP TABLE aside`, ledger.StatementsFollow},
	} {
		asOwner(t, l, tampered.with)
		if all := found(); len(all) > 0 {
			t.Errorf("%s: the next round found %q at once", tampered.with, all)
		}
		l.Pass(time.Minute)
		if all := found(); !slices.Contains(all, tampered.want) {
			t.Errorf("%s: found %q, want %q", tampered.with, all, tampered.want)
		}
		asOwner(t, l, tampered.back)
		l.Pass(time.Minute)
		if all := found(); len(all) > 0 {
			t.Errorf("%s: found %q", tampered.back, all)
		}
	}
}

func asOwner(t *testing.T, l *ledgertest.Ledger, statements string) {
	t.Helper()
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll()
		return err
	})
}

package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// What a process records at its start is what others read: rules get a
// version where they differ, and retention is the last one.
func TestWhatAProcessRecords(t *testing.T) {
	l := ledgertest.New(t)
	record := func(quota int64, kept ledger.Retention) (rules ledger.Rules, found ledger.Retention) {
		l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			if found, err = postgres.LoadRetention(ctx, tx); err != nil || found == kept {
				t.Errorf("before it is recorded: %+v, error %v", found, err)
			}
			rules := ledger.Rules{Tiers: ledger.Tiers{ledger.Indie: {Quota: quota, RequestsPerMinute: 1, RetentionDays: 1}}, Thresholds: ledger.Thresholds{7}}
			return postgres.RecordTerms(ctx, tx, rules, kept)
		})
		l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			if rules, err = postgres.LoadRules(ctx, tx); err == nil {
				found, err = postgres.LoadRetention(ctx, tx)
			}
			return err
		})
		return rules, found
	}
	for i, quota := range []int64{5, 5, 6} {
		kept := ledger.Retention{Hours: 1, Transfers: 4, Books: 10 + i}
		rules, found := record(quota, kept)
		if want := []int64{2, 2, 3}[i]; rules.Version != want || rules.Tiers[ledger.Indie].Quota != quota || rules.Thresholds[0] != 7 {
			t.Errorf("rules %+v, want version %d", rules, want)
		}
		if found != kept {
			t.Errorf("retention %+v, want %+v", found, kept)
		}
	}
}

// Rules that were changed together with their hash are not those that
// organizations were decided to follow.
func TestRulesThatNobodyDecidedAreFound(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	if _, err := l.Plans.Follow(t.Context(), l.Pool); err != nil {
		t.Fatal(err)
	}
	check := func() (found []ledger.Violation) {
		l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			found, _, err = postgres.CheckStandings(ctx, tx, "", l.Now(), l.Now())
			return err
		})
		return found
	}
	if found := check(); len(found) > 0 {
		t.Errorf("before they are changed: %+v", found)
	}
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH changed AS (SELECT jsonb_set(rules, '{tiers,indie,quota}', '7') AS rules FROM terms)
			UPDATE terms SET rules = changed.rules, hash = sha256(convert_to(jsonb_build_array(version, changed.rules, kept)::text, 'UTF8')) FROM changed`)
		return err
	})
	if found := check(); len(found) != 1 || found[0].Invariant != ledger.TermsAreRecorded {
		t.Errorf("found %+v, want the rules", found)
	}
}

package postgres_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/bus"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// noon is when the first occurrence of a test happened.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// open returns a fresh database with the tables of this module.
func open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
}

// apply groups occurrences in one transaction, without budgets.
func apply(ctx context.Context, pool *pgxpool.Pool, occurrences ...grouping.Occurrence) error {
	return applyWithin(ctx, pool, math.MaxInt, occurrences...)
}

// applyWithin is apply with a budget of each project.
func applyWithin(ctx context.Context, pool *pgxpool.Pool, budget int, occurrences ...grouping.Occurrence) error {
	_, err := create(ctx, pool, ofProject(budget), occurrences...)
	return err
}

// ofProject is a budget of each project, and none of the organization.
func ofProject(budget int) grouping.Budgets {
	return grouping.Budgets{Project: budget, Organization: math.MaxInt}
}

// create is apply within budgets, and returns how many groups were created.
func create(ctx context.Context, pool *pgxpool.Pool, budgets grouping.Budgets, occurrences ...grouping.Occurrence) (groups int, err error) {
	tally := grouping.NewTally()
	for _, o := range occurrences {
		tally.Add(o)
	}
	err = pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		effect, err := postgres.Writer{NewGroups: budgets}.Apply(ctx, tx, tally.Counts())
		groups = len(effect.Created)
		if err != nil {
			return err
		}
		return bus.Announce(ctx, tx, effect.Decided)
	})
	return groups, err
}

func mustApply(t testing.TB, pool *pgxpool.Pool, occurrences ...grouping.Occurrence) {
	t.Helper()
	if err := apply(t.Context(), pool, occurrences...); err != nil {
		t.Fatal(err)
	}
}

// seen is an occurrence of an error of the type,
// in organization "acme" and project "shop".
func seen(typ string, after time.Duration) grouping.Occurrence {
	return grouping.Occurrence{
		Organization: "acme", Project: "shop", Entry: typ + after.String(), Accepted: noon, Expires: grouping.Expiry(noon, 7),
		At: noon.Add(after), Severity: grouping.SeverityError, Environment: "prod",
		Error: grouping.Error{Type: typ, Message: "it broke", StackTrace: []string{"at com.acme.A.b(A.java:1)"}},
	}
}

// calledBy is a trace of one group whose caller is
// too far out to count, except in the strictest hash.
func calledBy(caller string) []string {
	return []string{"at com.acme.C.d(C.java:1)", "at com.acme.D.e(D.java:1)", "at com.acme.F.g(F.java:1)", "at com.acme.X." + caller + "(X.java:1)"}
}

// read runs fn as the organization.
func read[T any](t testing.TB, pool *pgxpool.Pool, organization string, fn func(ctx context.Context, tx pgx.Tx) (T, error)) (result T) {
	t.Helper()
	err := pg.ReadAs(t.Context(), pool, pg.Organization(organization), func(tx pgx.Tx) (err error) {
		result, err = fn(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func list(t testing.TB, pool *pgxpool.Pool, organization string, q postgres.GroupQuery) []postgres.Group {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	return search(t, pool, organization, q).Groups
}

// search is a page of groups.
func search(t testing.TB, pool *pgxpool.Pool, organization string, q postgres.GroupQuery) postgres.Page {
	t.Helper()
	return read(t, pool, organization, func(ctx context.Context, tx pgx.Tx) (postgres.Page, error) {
		return postgres.Groups(ctx, tx, pg.Organization(organization), q)
	})
}

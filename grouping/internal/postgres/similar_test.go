package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// thrown is an error of the type with these calls of com.acme, the innermost first.
func thrown(typ string, calls ...string) grouping.Occurrence {
	o := seen(typ, 0)
	o.Error.StackTrace = nil
	for _, call := range calls {
		o.Error.StackTrace = append(o.Error.StackTrace, "at com.acme."+call+"(A.java:1)")
	}
	return o
}

// similarTo applies the errors, and returns the types of the groups that
// may be similar to that of the first.
func similarTo(t *testing.T, first grouping.Occurrence, others ...grouping.Occurrence) (types []string) {
	t.Helper()
	pool := open(t)
	mustApply(t, pool, append(others, first)...)
	of := list(t, pool, "acme", postgres.GroupQuery{Words: []string{first.Error.Message}})[0]
	found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Candidates, error) {
		return postgres.Similar(ctx, tx, "acme", of.ID)
	})
	if found.Of.ID != of.ID {
		t.Errorf("similar to group %q instead of %q", found.Of.ID, of.ID)
	}
	for _, other := range found.Others {
		types = append(types, other.Type)
	}
	slices.Sort(types)
	return types
}

// Groups may be similar that share the loosest hash or a call.
func TestSimilar(t *testing.T) {
	of := thrown("Declined", "Card.charge", "Shop.pay")
	of.Error.Message = "no money"
	got := similarTo(t, of, thrown("Declined", "Card.charge", "Job.renew"), thrown("Broken", "Pipe.read", "Shop.pay"), thrown("Broken", "Pipe.read", "Job.renew"))
	if want := []string{"Broken", "Declined"}; !slices.Equal(got, want) {
		t.Errorf("similar are %v, want %v", got, want)
	}
}

// Where too many groups share a call, those
// are compared that share a rare one.
func TestSimilarByRareCalls(t *testing.T) {
	of := thrown("Declined", "Card.charge", "Shop.main")
	of.Error.Message = "no money"
	others := []grouping.Occurrence{thrown("Broken", "Pipe.read", "Card.charge", "Job.main")}
	for i := range 60 {
		others = append(others, thrown("Lost", fmt.Sprintf("Way%c%c.find", 'a'+i/26, 'a'+i%26), "Shop.main"))
	}
	if got := similarTo(t, of, others...); len(got) != 50 || got[0] != "Broken" {
		t.Errorf("%d are similar: %v", len(got), got)
	}
}

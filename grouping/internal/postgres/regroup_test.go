package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// wrappedIn is an error whose root cause is always the same, in one of a type.
func wrappedIn(typ string, after time.Duration) grouping.Occurrence {
	o := seen(typ, after)
	o.Error.StackTrace = []string{"at com.acme.A.b(A.java:1)", "Caused by: com.acme.Root: r", "at com.acme.C.d(C.java:1)"}
	return o
}

// The types of a group's entries add up over transactions, until there are too many.
func TestEntrySearchAddsUp(t *testing.T) {
	pool := open(t)
	for n := range grouping.MaxEntryTypes + 2 {
		o := wrappedIn(fmt.Sprintf("E%d", n), time.Duration(n)*time.Second)
		mustApply(t, pool, o, o)
		group := list(t, pool, "acme", postgres.GroupQuery{})
		if len(group) != 1 {
			t.Fatalf("%d groups", len(group))
		}
		found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (grouping.EntrySearch, error) {
			search, from, err := postgres.FindEntrySearch(ctx, tx, "acme", group[0].ID)
			if !from.Equal(noon) {
				t.Errorf("from %s", from)
			}
			return search, err
		})
		want := n + 1
		if want > grouping.MaxEntryTypes {
			want = 1 // any
		}
		if len(found.Types) != want || (found.Types[0] == grouping.AnyType) != (n >= grouping.MaxEntryTypes) || !found.Last.Equal(o.At) {
			t.Errorf("after %d types: %+v", n+1, found)
		}
	}
}

package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Of splits at once, as many pass as a project may have.
func TestSplitsAtOnce(t *testing.T) {
	w := newWorld(t)
	const groups = 8
	for kind := range groups {
		w.consume(w.accept(w.now, groupingtest.Failure(kind)), w.accept(w.now, strings.ReplaceAll(groupingtest.Failure(kind), "chargel", "chargez")))
	}
	err := pg.InTxAsSystem(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO group_splits (organization, project, hash, after, error_group, made)
			SELECT 'acme', 'shop', decode(lpad(to_hex(n), 32, '0'), 'hex'), now(), 'grp_1', 'grp_' || n FROM generate_series(2, $1) AS n`, grouping.MaxSplits)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := groupsOf(t, w.pool, "acme")
	if len(found) != groups {
		t.Fatalf("there are %d groups", len(found))
	}
	var all sync.WaitGroup
	faults := make([]error, groups)
	for i, g := range found {
		detail, err := w.Groups.Detail(t.Context(), member, g.ID)
		if err != nil || len(detail.Occurrences) != 2 {
			t.Fatalf("%d samples, %v", len(detail.Occurrences), err)
		}
		all.Go(func() {
			_, faults[i] = w.Merges.Split(t.Context(), w.request(), g.ID, detail.Occurrences[0].SplitHash, nil)
		})
	}
	all.Wait()
	refused := 0
	for _, fault := range faults {
		if errors.Is(fault, postgres.ErrManySplits) {
			refused++
		} else if fault != nil {
			t.Error(fault)
		}
	}
	if refused != groups-1 {
		t.Errorf("%d of %d splits are refused where one is left: %s", refused, groups, fmt.Sprint(faults))
	}
}

package bus_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// mentioned are the facts about mentions, in their order.
func (w *world) mentioned() (facts []contract.ErrorGroupMentioned) {
	w.t.Helper()
	err := pg.InTxAsSystem(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), `SELECT body FROM facts WHERE type = $1 ORDER BY position`, contract.TypeErrorGroupMentioned)
		if err != nil {
			return err
		}
		facts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (fact contract.ErrorGroupMentioned, err error) {
			return fact, row.Scan(&fact)
		})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return facts
}

// Those whom a note mentions are told once, except who wrote it, and once for
// all groups of one request.
func TestMentionsAreTold(t *testing.T) {
	w := newWorld(t)
	w.join("mem_ada", "Ada")
	w.join("mem_bob", "Bob")
	w.consume(w.failures(1, 2)...)
	found := groupsOf(t, w.pool, "acme")
	note := func(key, text string, ids ...string) {
		t.Helper()
		request := w.request()
		request.Key = key
		if _, err := w.Decisions.DecideEach(t.Context(), request, ids, groups.DecisionRequest{Command: grouping.Command{Note: text}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		note("once", "@Ada, @me and @bob: look", found[0].ID)
	}
	note("", "@me: look", found[0].ID)
	note("", "nobody", found[0].ID)
	note("", "@Bob", found[0].ID, found[1].ID)
	if reported := w.reported(); len(reported) == 0 || reported[0].After["mentions"] != "mem_ada, mem_1, mem_bob" {
		t.Errorf("the audit is told %+v", reported)
	}
	told := w.mentioned()
	if len(told) != 2 {
		t.Fatalf("told: %+v", told)
	}
	first, second := told[0], told[1]
	if first.Group != found[0].ID || first.Note != "@Ada, @me and @bob: look" || first.Actor != "mem_1" || first.More != 0 || first.Title != found[0].Title ||
		!slices.Equal(first.Members, []string{"mem_ada", "mem_bob"}) || !slices.Equal(first.MailTo.Members, first.Members) || first.Path != "/console/errors/"+found[0].ID {
		t.Errorf("the first tells %+v", first)
	}
	if second.More != 1 || !slices.Equal(second.MailTo.Members, []string{"mem_bob"}) {
		t.Errorf("the second tells %+v", second)
	}
	activity, err := w.Groups.Activity(t.Context(), member, found[0].ID, 100, 10)
	if err != nil || !slices.ContainsFunc(activity, func(a postgres.Activity) bool {
		return slices.Equal(a.Mentions, []string{"mem_ada", "mem_1", "mem_bob"})
	}) {
		t.Errorf("activity: %+v, %v", activity, err)
	}
}

package postgres_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/former"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// hashesOf are those of one former version.
func hashesOf(version int, e grouping.Error) []grouping.ScopedHash {
	var g former.Grouper
	return slices.DeleteFunc(g.Hashes(e, version), func(h grouping.ScopedHash) bool { return h.Version != version })
}

// remembered stores occurrences as a former version did, and
// returns how many groups they made.
func remembered(t *testing.T, pool *pgxpool.Pool, version int, occurrences []grouping.Occurrence) int {
	t.Helper()
	tally := grouping.NewTally()
	for _, o := range occurrences {
		tally.Add(o)
	}
	counts := tally.Counts()
	for _, c := range counts {
		c.Hashes = hashesOf(version, c.Samples[0].Error)
	}
	created := storeOf(t, pool, counts).Created
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE error_groups g SET why = why || jsonb_build_object('version', h.version, 'hash', encode(h.hash, 'hex'))
			FROM group_hashes h WHERE (h.organization, h.error_group) = (g.organization, g.id) AND h.level <> 'trace'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(created)
}

// storeOf applies counts.
func storeOf(t *testing.T, pool *pgxpool.Pool, counts []*grouping.Count) (effect postgres.Effect) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		effect, err = postgres.Writer{NewGroups: grouping.Budgets{Project: 100, Organization: 100}}.Apply(t.Context(), tx, counts)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return effect
}

// month is a history of errors of which each comes once a day,
// at other lines, with other ids.
func month(days int) (occurrences []grouping.Occurrence) {
	traces := [][]string{
		{"at com.acme.pay.Gateway.charge(Gateway.java:1)", "at com.acme.web.Controller.run(Controller.java:1)", "at com.acme.Main.main(Main.java:1)"},
		{"at com.acme.pay.Gateway.refund(Gateway.java:1)", "at com.acme.web.Controller.run(Controller.java:1)", "at com.acme.Main.main(Main.java:1)"},
		{"at renderCart (https://cdn.acme.com/assets/index-BqR3_x9k.js:1:112)", "at t (https://cdn.acme.com/assets/index-BqR3_x9k.js:1:99)"},
		{`  File "/app/a.py", line 5, in load`, `  File "/app/b.py", line 9, in main`},
		nil,
	}
	for day := range days {
		for i, trace := range traces {
			o := seen([]string{"A", "B", "C", "D", "E"}[i], time.Duration(day)*24*time.Hour)
			o.Error.Message = []string{"declined", "it broke", "e is undefined", "no such key", "cannot reach the host"}[i]
			o.Error.StackTrace = trace
			occurrences = append(occurrences, o)
		}
	}
	return occurrences
}

// Inherited hashes go with their group: one that led nowhere
// would stop its project for ever.
func TestInheritedHashesExpire(t *testing.T) {
	pool := open(t)
	remembered(t, pool, grouping.Version-1, []grouping.Occurrence{kept("Old", 0, 7)})
	mustApply(t, pool, kept("Old", day, 7))
	if hashes := hashesOf(grouping.Version-1, seen("Old", 0).Error); rows(t, pool)[1] <= len(hashes) {
		t.Fatal("nothing is inherited")
	}
	pruneAt(t, pool, noon.Add(100*day))
	if left := rows(t, pool); left[0]+left[1] != 0 {
		t.Errorf("rows that are left: %v", left)
	}
	mustApply(t, pool, kept("Old", 101*day, 7))
}

// A new version opens no new group for an error that a former version
// grouped: counts continue in the old one, which is then found by the new
// hashes. A new error creates one group.
func TestGroupsOfFormerVersions(t *testing.T) {
	for _, version := range []int{1, 3, 4} { // version 2 differs from the first in types with ids alone
		t.Run(strconv.Itoa(version), func(t *testing.T) { inherit(t, version) })
	}
}

func inherit(t *testing.T, version int) {
	pool := open(t)
	if n := remembered(t, pool, version, month(30)); n != 5 {
		t.Fatalf("version %d made %d groups", version, n)
	}
	for range 2 {
		if n, err := create(t.Context(), pool, ofProject(0), month(3)...); err != nil || n != 0 {
			t.Fatalf("%d groups were created for old errors, %v", n, err)
		}
	}
	if n, err := create(t.Context(), pool, ofProject(100), append(month(1), seen("F", 0))...); err != nil || n != 1 {
		t.Fatalf("%d groups were created for one new error, %v", n, err)
	}
	for _, group := range list(t, pool, "acme", postgres.GroupQuery{}) {
		if want := map[bool]int64{true: 1, false: 30 + 3 + 3 + 1}[group.Type == "F"]; group.Count != want {
			t.Errorf("%s was counted %d times, want %d", group.Type, group.Count, want)
		}
	}
}

package postgres_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
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

// storedByFormer stores occurrences as a former
// version did, and returns how many groups they made.
func storedByFormer(t *testing.T, pool *pgxpool.Pool, version int, occurrences []grouping.Occurrence) int {
	t.Helper()
	tally := grouping.NewTally()
	for _, o := range occurrences {
		tally.Add(o)
	}
	counts := tally.Counts()
	for _, c := range counts {
		c.Hashes = hashesOf(version, c.Samples[0].Error)
	}
	created := applyCounts(t, pool, counts).Created
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE error_groups g SET calls = '{}', why = why || jsonb_build_object('version', h.version, 'hash', encode(h.hash, 'hex'))
			FROM group_hashes h WHERE (h.organization, h.error_group) = (g.organization, g.id) AND h.level <> 'trace'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(created)
}

// applyCounts applies counts in one transaction.
func applyCounts(t *testing.T, pool *pgxpool.Pool, counts []*grouping.Count) (effect postgres.Effect) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		effect, err = postgres.Writer{NewGroups: ofProject(1000)}.Apply(t.Context(), tx, counts)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return effect
}

// month is a history of errors as runtimes print them. Each recurs as often
// as the file has it, at other lines, with other ids, in other bundles.
func month(t *testing.T) (days [][]grouping.Occurrence) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	day := 0
	for n, part := range strings.Split(string(text), "=== ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		if day++; strings.HasPrefix(head, "base") {
			day = 0
		}
		if !strings.HasPrefix(head, "other") {
			days = append(days, nil)[:max(len(days), day+1)]
			days[day] = append(days[day], printed(body, n, day))
		}
	}
	return days
}

// printed is an error of the file, which may begin with its type and message.
func printed(body string, n, day int) grouping.Occurrence {
	o := seen("printed "+strconv.Itoa(n), time.Duration(day)*24*time.Hour)
	o.Error = grouping.Error{}
	if rest, ok := strings.CutPrefix(body, "type: "); ok {
		o.Error.Type, body, _ = strings.Cut(rest, "\n")
	}
	if rest, ok := strings.CutPrefix(body, "message: "); ok {
		o.Error.Message, body, _ = strings.Cut(rest, "\n")
	}
	o.Error.StackTrace = strings.Split(strings.Trim(body, "\n"), "\n")
	return o
}

// Inherited hashes are deleted with their group:
// a stale one would stop its project for ever.
func TestInheritedHashesExpire(t *testing.T) {
	pool := open(t)
	storedByFormer(t, pool, grouping.Version-1, []grouping.Occurrence{kept("Old", 0, 7)})
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

// A new version opens no new group for an error that a
// former version grouped, even if it groups it differently:
// counts continue in the old groups, which are then found
// by the new hashes. A new error creates one group.
func TestGroupsOfFormerVersions(t *testing.T) {
	for _, version := range []int{1, 3, 4} { // version 2 differs from the first in types with ids alone
		t.Run(strconv.Itoa(version), func(t *testing.T) { inherit(t, version) })
	}
}

func inherit(t *testing.T, version int) {
	pool, days := open(t), month(t)
	groups, all := 0, slices.Concat(days...)
	for _, day := range days {
		groups += storedByFormer(t, pool, version, day)
	}
	if now := decided(all); groups <= now {
		t.Fatalf("version %d made %d groups, of which %d are left: nothing is regrouped", version, groups, now)
	}
	for range 2 {
		if n, err := create(t.Context(), pool, ofProject(len(all)), all...); err != nil || n != 0 {
			t.Fatalf("%d groups were created for old errors, %v", n, err)
		}
	}
	if n, err := create(t.Context(), pool, ofProject(len(all)), append(all, seen("F", 0))...); err != nil || n != 1 {
		t.Fatalf("%d groups were created for one new error, %v", n, err)
	}
	counted := int64(0)
	for _, group := range list(t, pool, "acme", postgres.GroupQuery{}) {
		counted += group.Count
	}
	if want := int64(4*len(all) + 1); counted != want {
		t.Errorf("%d errors were counted, want %d", counted, want)
	}
}

// decided is how many groups today's version makes.
func decided(all []grouping.Occurrence) int {
	var g grouping.Grouper
	groups := map[grouping.Hash]bool{}
	for _, o := range all {
		groups[g.Fingerprint(o.Error).Deciding().Hash] = true
	}
	return len(groups)
}

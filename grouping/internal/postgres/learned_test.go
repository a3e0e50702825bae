package postgres_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// vendored is an error of its own kind, thrown in an unlisted library.
func vendored(kind rune, after time.Duration) grouping.Occurrence {
	o := seen("VendoredError", after)
	o.Accepted, o.Error.Message = noon.Add(after), ""
	o.Error.StackTrace = []string{"at org.vendor.Client.send" + string(kind) + "(C.java:1)", "at com.acme.Cart.total" + string(kind) + "(A.java:1)"}
	return o
}

// ownKinds are n kinds of errors of the project's own code.
func ownKinds(n int) (all []grouping.Occurrence) {
	for i := range n {
		o := seen("E", 0)
		o.Error.StackTrace = []string{"at com.acme.Cart.total" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "(A.java:1)"}
		all = append(all, o)
	}
	return all
}

func librariesOf(t *testing.T, pool *pgxpool.Pool) grouping.Libraries {
	t.Helper()
	return learnedOf(t, pool).Libraries
}

func learnedOf(t *testing.T, pool *pgxpool.Pool) (found grouping.Learned) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		shop := postgres.Project{Organization: "acme", Name: "shop"}
		all, err := postgres.FindLearned(t.Context(), tx, []postgres.Project{shop, {Organization: "acme", Name: "none"}})
		found = all[shop]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// taught is a database in whose project org.vendor has become a
// library: most errors share another package. The groups of vendored
// errors a to d are older.
func taught(t *testing.T) (pool *pgxpool.Pool, vendoredNow func(rune, time.Duration) grouping.Occurrence) {
	t.Helper()
	pool = open(t)
	mustApply(t, pool, append(ownKinds(59), vendored('a', 0), vendored('b', 0), vendored('c', 0), vendored('d', 0))...)
	if got := librariesOf(t, pool); got != nil {
		t.Fatalf("libraries %v of 63 errors", got)
	}
	mustApply(t, pool, seen("Last", 0))
	libraries := librariesOf(t, pool)
	if want := (grouping.Libraries{"org.vendor": true}); !maps.Equal(libraries, want) {
		t.Fatalf("libraries %v, want %v", libraries, want)
	}
	return pool, func(kind rune, after time.Duration) grouping.Occurrence {
		o := vendored(kind, after)
		o.Expires, o.Error.Learned = grouping.Expiry(o.Accepted, 7), grouping.Learned{Libraries: libraries}
		return o
	}
}

// Older groups are found by their former libraries for 30 days, and
// then by the hashes that they inherited. Each error is counted.
func TestLibrariesAreLearned(t *testing.T) {
	pool, now := taught(t)
	again := time.Hour
	for _, step := range []struct {
		kind  rune
		after time.Duration
		want  int
	}{{'a', again, 0}, {'b', 29 * day, 0}, {'a', 40 * day, 0}, {'c', 40 * day, 1}, {'e', again, 1}} {
		if n, err := create(t.Context(), pool, ofProject(1000), now(step.kind, step.after)); err != nil || n != step.want {
			t.Errorf("error %q created %d groups after %v, want %d: %v", step.kind, n, step.after, step.want, err)
		}
	}
	counted := int64(0)
	for _, group := range list(t, pool, "acme", postgres.GroupQuery{Words: []string{"VendoredError"}}) {
		counted += group.Count
	}
	if want := int64(4 + 5); counted != want {
		t.Errorf("%d errors were counted, want %d", counted, want)
	}
}

// Inherited hashes are deleted with their group: a
// stale one would stop its project.
func TestInheritedHashesExpire(t *testing.T) {
	pool, now := taught(t)
	before := rows(t, pool)[1]
	mustApply(t, pool, now('a', time.Hour))
	if rows(t, pool)[1] <= before {
		t.Fatal("nothing is inherited")
	}
	pruneAt(t, pool, noon.Add(100*day))
	if left := rows(t, pool); left[0]+left[1] != 0 {
		t.Errorf("rows that are left: %v", left)
	}
	mustApply(t, pool, now('a', 101*day))
}

// No name of a package keeps its group from being stored.
func TestOddNamesOfPackages(t *testing.T) {
	pool := open(t)
	for i, name := range []string{"ac\x00me", "ac\xffme", "\uFFFE\u2028", `a"\\u0000b`, strings.Repeat("n", 1000)} {
		o := seen("E", 0)
		o.Error.StackTrace = []string{fmt.Sprintf("at com.%s.Cart.total%c(A.java:1)", name, 'a'+i)}
		if err := apply(t.Context(), pool, o); err != nil {
			t.Errorf("package %.20q: %v", name, err)
		}
	}
}

// named is an error whose message holds a name.
func named(name string, after time.Duration) grouping.Occurrence {
	o := seen("NotFound", after)
	o.Accepted, o.Error.Message = noon.Add(after), "user "+name+" not found"
	o.Expires, o.Error.StackTrace = grouping.Expiry(o.Accepted, 7), []string{"at com.acme.Users.load(U.java:1)"}
	return o
}

// A name in a message makes ten groups. Then names are values: another one
// joins the group that the first such error had before, and so do all that
// come later.
func TestValuesAreLearned(t *testing.T) {
	pool := open(t)
	var first []grouping.Occurrence
	for _, name := range strings.Fields("alice bob carol dave erin frank grace heidi ivan judy") {
		first = append(first, named(name, 0))
	}
	mustApply(t, pool, first[:9]...)
	if got := learnedOf(t, pool).Values; len(got) > 0 {
		t.Fatalf("%d values of nine names", len(got))
	}
	mustApply(t, pool, first[9:]...)
	known := learnedOf(t, pool)
	if len(known.Values) != 1 {
		t.Fatalf("values %v", known.Values)
	}
	for i, name := range strings.Fields("bob mallory alice oscar") {
		o := named(name, time.Hour)
		o.Error.Learned = known
		if n, err := create(t.Context(), pool, ofProject(1000), o); err != nil || n != 0 {
			t.Errorf("error %d, of %s, created %d groups: %v", i, name, n, err)
		}
	}
	counts := map[int64]int{}
	for _, group := range list(t, pool, "acme", postgres.GroupQuery{Words: []string{"NotFound"}}) {
		counts[group.Count]++
	}
	if counts[5] != 1 || counts[1] != 9 {
		t.Errorf("groups by their errors: %v, want bob's with five", counts)
	}
}

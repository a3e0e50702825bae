package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A count of random blocks is that of a plain loop over their entries:
// by headers, directories and texts, over days and projects.
func TestCountsAgreeWithAPlainLoop(t *testing.T) { onStores(t, countsAgreeWithAPlainLoop) }

func countsAgreeWithAPlainLoop(t *testing.T, r *rig) {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 11))
	all := r.keepCounted(random, 400)
	store := r.both(postgres.Limits{Bytes: postgres.DefaultLimits().Bytes, Time: time.Minute}) // the machine may be slow
	for range r.rounds(200) {
		count := ingest.Count{Search: someSearch(random)}
		count.Search.Query = mustQuery([]string{"", "level:error", "service:api OR level:warn", `"of b"`, "-service:api job", "environment:prod job"}[random.IntN(6)])
		if count.Search.From != nil && count.Search.To != nil {
			count.Every = time.Duration(1+random.IntN(100_000)) * time.Second
			if count.Buckets() > ingest.MaxBuckets {
				count.Every = 0
			}
		}
		for _, name := range []string{"project", "service", ingest.FieldPattern}[:random.IntN(4)] {
			count.By = append(count.By, mustField(name))
		}
		got, err := store.Count(t.Context(), "org_1", count, ingest.MaxValues)
		if err != nil || got.From != nil {
			t.Fatalf("%v, incomplete from %v", err, got.From)
		}
		checkCount(t, &count, got, all)
	}
	if other, err := store.Count(t.Context(), "org_2", ingest.Count{}, 1); err != nil || other.Levels.Sum() != 0 {
		t.Errorf("another organization counts %d entries, %v", other.Levels.Sum(), err)
	}
}

func (r *rig) keepCounted(random *rand.Rand, blocks int) (all []ingest.Found) {
	var kept []postgres.Block
	for i := range blocks {
		most, padding := 8, ""
		if i%20 == 0 { // it has columns
			most, padding = 200, strings.Repeat("x", 1000)
		}
		project, begin := fmt.Sprint("prj_", random.IntN(3)), random.Int64N(1<<20)
		var entries []ingest.Stored
		for range 1 + random.IntN(most) {
			e := r.entry(begin+random.Int64N(int64(1)<<random.IntN(14)), "")
			e.Level, e.Environment = ingest.Severity(1+random.IntN(5)), environments[random.IntN(len(environments))]
			e.Text = fmt.Appendf(nil, `{"message":"job %d of %s","metadata":{"service":%q},"padding":%q}`,
				random.IntN(9), string(rune('a'+random.IntN(9))), []string{"api", "worker"}[random.IntN(2)], padding)
			entries = append(entries, e)
			all = append(all, ingest.Found{Stored: e, Project: project})
		}
		block := r.block("org_1", project, entries...)
		block.Retention = 7 + 23*random.IntN(2)
		kept = append(kept, block)
	}
	r.keep(kept...)
	return all
}

func checkCount(t *testing.T, count *ingest.Count, got ingest.Counted, all []ingest.Found) {
	t.Helper()
	counter := count.NewCounter()
	for i := range all {
		if count.Search.Project == "" || count.Search.Project == all[i].Project {
			counter.Add([]ingest.Stored{all[i].Stored}, all[i].Project)
		}
	}
	want := counter.Result(ingest.MaxValues)
	got.Read = 0
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("counted %+v, want %+v, for %+v", got, want, count)
	}
}

func mustQuery(text string) ingest.Query {
	query, err := ingest.ParseQuery(text)
	if err != nil {
		panic(err)
	}
	return query
}

func mustField(name string) ingest.Field {
	field, err := ingest.ParseField(name)
	if err != nil {
		panic(err)
	}
	return field
}

// A count of bundles is that of their blocks, also where some of these are gone.
func TestCountsOfBundlesAgreeWithAPlainLoop(t *testing.T) {
	r, random := newRig(t), rand.New(rand.NewPCG(13, 13))
	var all []ingest.Found
	for range 20 {
		all = append(all, r.keepBundle(random)...)
	}
	agree := func() {
		t.Helper()
		for range 100 {
			from, to := ingest.Instant{Seconds: random.Int64N(5000)}, ingest.Instant{Seconds: 5000 + random.Int64N(20_000)}
			count := ingest.Count{Search: ingest.Search{From: &from, To: &to}}
			count.Search.Query = mustQuery([]string{"", "job", `"of b"`, "-service:api", "service:api level:error", "service:none job", "environment:prod"}[random.IntN(7)])
			if random.IntN(2) == 0 {
				count.Every = time.Duration(100+random.IntN(5000)) * time.Second
			}
			for _, name := range []string{"service", "level", "absent"}[:random.IntN(4)] {
				count.By = append(count.By, mustField(name))
			}
			store := r.store(postgres.Limits{Bytes: 1 << 30, Time: time.Minute})
			store.LookAtBundles(1 + random.IntN(30))
			got, err := store.Count(t.Context(), "org_1", count, ingest.MaxValues)
			testenv.Must(t, err)
			checkCount(t, &count, got, all)
		}
	}
	agree()
	for _, gone := range []string{`bundled > 1 AND max_seconds % 3 = 0`, `bundled IS NULL AND max_seconds % 3 = 1`} {
		r.spoil(func(tx pgx.Tx) error {
			return removeBlocks(t.Context(), tx, gone)
		})
		left := map[string]bool{}
		for _, text := range r.pageThrough(r.store(postgres.DefaultLimits()), "org_1", ingest.Search{Limit: 1000}) {
			left[text] = true
		}
		before := len(all)
		if all = slices.DeleteFunc(all, func(f ingest.Found) bool { return !left[string(f.Text)] }); len(all) == before {
			t.Errorf("no block is gone of those with %s", gone)
		}
		agree()
	}
}

// keepBundle keeps some blocks together.
func (r *rig) keepBundle(random *rand.Rand) (all []ingest.Found) {
	r.t.Helper()
	var blocks []postgres.Block
	project, begin := fmt.Sprint("prj_", random.IntN(2)), random.Int64N(20_000)
	for range 1 + random.IntN(5) {
		var entries []ingest.Stored
		for i := range 1 + random.IntN(8) {
			e := r.entry(begin+random.Int64N(100), "")
			e.Level, e.Environment = ingest.Severity(random.IntN(6)), environments[random.IntN(len(environments))]
			e.Text = fmt.Appendf(nil, `{"message":"job %d of %s","metadata":{"service":%q},"padding":["%d%s"]}`,
				random.IntN(9), string(rune('a'+random.IntN(9))), []string{"api", "worker"}[random.IntN(2)], r.entries, padding[:len(padding)*(1-min(i, 1))])
			entries, all = append(entries, e), append(all, ingest.Found{Stored: e, Project: project})
		}
		blocks = append(blocks, r.block("org_1", project, entries...))
	}
	r.keep(blocks...)
	return all
}

// A count that has had its share says from when on it is exact, and is so.
func TestACountEndsAtItsShare(t *testing.T) { onStores(t, countsEndAtTheirShare) }

func countsEndAtTheirShare(t *testing.T, r *rig) {
	t.Helper()
	r.keepCounted(rand.New(rand.NewPCG(12, 12)), 400)
	count := ingest.Count{
		Search: ingest.Search{From: &ingest.Instant{}, To: &ingest.Instant{Seconds: 1 << 21}}, Every: 5000 * time.Second,
		By: []ingest.Field{mustField("service")},
	}
	whole, err := r.both(postgres.DefaultLimits()).Count(t.Context(), "org_1", count, ingest.MaxValues)
	if err != nil || whole.From != nil {
		t.Fatalf("incomplete from %v, %v", whole.From, err)
	}
	for _, bytes := range []int{1, 60_000, 80_000} {
		got, err := r.both(postgres.Limits{Bytes: bytes, Time: time.Minute}).Count(t.Context(), "org_1", count, ingest.MaxValues)
		if err != nil || got.From == nil {
			t.Fatalf("a count with a share of %d bytes has read all, %v", bytes, err)
		}
		if got.Levels.Sum() == 0 || got.Levels.Sum() >= whole.Levels.Sum() {
			t.Errorf("%d bytes: counted %d of %d entries", bytes, got.Levels.Sum(), whole.Levels.Sum())
		}
		for i := range got.Buckets {
			exact := int64(i)*5000 > got.From.Seconds
			if newer, counted := whole.Buckets[i].Sum(), got.Buckets[i].Sum(); counted > newer || exact && counted < newer {
				t.Errorf("%d bytes: counted %d of %d in bucket %d, exact after %s", bytes, counted, newer, i, got.From)
			}
		}
	}
}

// Another organization's blocks of the same project name are not counted.
func TestACountIsOfOneOrganization(t *testing.T) { onStores(t, countsAreOfOneOrganization) }

func countsAreOfOneOrganization(t *testing.T, r *rig) {
	t.Helper()
	r.keep(r.block("org_1", "prj_1", r.entry(1, "")), r.block("org_2", "prj_1", r.entry(1, ""), r.entry(2, "")))
	for organization, want := range map[pg.Organization]int64{"org_1": 1, "org_2": 2} {
		got, err := r.both(postgres.DefaultLimits()).Count(t.Context(), organization, ingest.Count{By: []ingest.Field{mustField("message")}}, 5)
		if err != nil || got.Levels.Sum() != want {
			t.Errorf("%s counts %d entries, want %d, %v", organization, got.Levels.Sum(), want, err)
		}
	}
}

package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/clickhousetest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A rig is a log store of blocks with any spans, made by a test.
type rig struct {
	t       *testing.T
	pool    *pgxpool.Pool
	owner   *pgxpool.Pool // may change what the server can't
	metrics *prometheus.Registry
	entries int

	away  func(limits postgres.Limits) store // of kept blocks that have moved; nil: none do
	moved float64                            // how many of them move, from 0 to 1
	mover *history.Mover
}

// A store is what searches need of one.
type store interface {
	Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error)
	Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error)
}

// onStores runs a test of what each store promises: on blocks, on rows of ClickHouse, and
// on both, where each has some of the entries.
func onStores(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("blocks", func(t *testing.T) { test(t, newRig(t)) })
	for name, moved := range map[string]float64{"rows": 1, "both": 0.5} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.moveTo(clickhousetest.URL(t), moved)
			test(t, r)
		})
	}
}

// rounds is how often to repeat what a question to ClickHouse makes ten times as long.
func (r *rig) rounds(many int) int {
	if r.away != nil {
		return many / 4
	}
	return many
}

// moveTo has a part of what is kept move to ClickHouse.
func (r *rig) moveTo(url string, moved float64) {
	r.t.Helper()
	rows := func(limits postgres.Limits) *clickhouse.Store {
		rows, err := clickhouse.New(clickhouse.Config{URL: url, Limits: clickhouse.Limits(limits), Clock: time.Now})
		testenv.Must(r.t, err)
		return rows
	}
	blocks := func(limits postgres.Limits) *postgres.Store {
		r.metrics = prometheus.NewRegistry()
		return postgres.NewStore(postgres.Config{Readers: r.pool, Limits: limits, Moves: true, Clock: time.Now, Metrics: r.metrics})
	}
	testenv.Must(r.t, rows(postgres.DefaultLimits()).Migrate(r.t.Context(), testenv.Logger(r.t)))
	r.away = func(limits postgres.Limits) store {
		return &history.Store{Blocks: blocks(limits), Rows: rows(limits), Clock: time.Now, Logger: testenv.Logger(r.t)}
	}
	r.moved = moved
	r.mover = history.NewMover(history.Config{
		Moves: &postgres.Moves{
			Pool: r.pool, Store: blocks(postgres.DefaultLimits()), Limits: postgres.MoveLimits{Bytes: 1 << 20, Entries: 1000, Least: 1, Lease: time.Minute},
		},
		Rows: rows(postgres.DefaultLimits()), NewID: uuid.NewString, Clock: time.Now, Metrics: prometheus.NewRegistry(), Logger: testenv.Logger(r.t),
	})
}

// both is what a test of all stores asks.
func (r *rig) both(limits postgres.Limits) store {
	r.t.Helper()
	if r.away == nil {
		return r.store(limits)
	}
	return r.away(limits)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	return &rig{t: t, pool: pool, owner: pgtest.Owner(t, pool)}
}

// store returns the store with limits and its own metrics.
func (r *rig) store(limits postgres.Limits) *postgres.Store {
	r.t.Helper()
	r.metrics = prometheus.NewRegistry()
	store := postgres.NewStore(postgres.Config{Readers: r.pool, Limits: limits, Clock: time.Now, Metrics: r.metrics})
	return store
}

// entry returns an entry at a second of the epoch; its text has its place.
func (r *rig) entry(second int64, padding string) ingest.Stored {
	r.entries++
	e := ingest.Stored{Place: ingest.Place{Time: ingest.Instant{Seconds: second}, Index: r.entries}, ReceivedAt: noon, Level: ingest.SeverityInfo}
	binary.BigEndian.PutUint64(e.Batch[:], uint64(r.entries)) //nolint:gosec // a test's
	e.Text = fmt.Appendf(nil, `{"timestamp":"%s","level":"info","message":"%d%s"}`, e.Time, r.entries, padding)
	return e
}

func (r *rig) block(organization, project string, entries ...ingest.Stored) postgres.Block {
	var builder ingest.Builder
	for _, e := range entries {
		builder.Add(e)
	}
	return postgres.Block{Block: builder.Build(), ID: uuid.NewString(), Organization: organization, Project: project, Retention: 30}
}

func (r *rig) keep(blocks ...postgres.Block) {
	r.t.Helper()
	first := int(r.moved * float64(len(blocks)))
	r.keepHere(blocks[:first])
	if r.mover != nil {
		testenv.Must(r.t, r.mover.RunOnce(r.t.Context()))
	}
	r.keepHere(blocks[first:])
}

func (r *rig) keepHere(blocks []postgres.Block) {
	r.t.Helper()
	store := r.store(postgres.DefaultLimits())
	err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		return store.Keep(r.t.Context(), tx, blocks)
	})
	testenv.Must(r.t, err)
}

// read returns how many bytes the last store's searches have read.
func (r *rig) read() (bytes, incomplete float64) {
	r.t.Helper()
	families, err := r.metrics.Gather()
	testenv.Must(r.t, err)
	for _, family := range families {
		switch family.GetName() {
		case "weir_ingest_search_read_bytes_total":
			bytes = family.Metric[0].Counter.GetValue()
		case "weir_ingest_search_incomplete_total":
			incomplete = family.Metric[0].Counter.GetValue()
		}
	}
	return bytes, incomplete
}

// For any spans of blocks and ends of pages, paging finds what a filter
// finds, in order and once.
func TestSearchAgreesWithAFilter(t *testing.T) { onStores(t, searchesAgreeWithAFilter) }

func searchesAgreeWithAFilter(t *testing.T, r *rig) {
	t.Helper()
	for seed := range uint64(r.rounds(8)) { //nolint:gosec // a few
		random, organization := rand.New(rand.NewPCG(seed, 1)), fmt.Sprint("org_", seed)
		var all []ingest.Found
		var blocks []postgres.Block
		for range 30 {
			project, begin, span := fmt.Sprint("prj_", random.IntN(3)), random.Int64N(40_000), int64(1)<<random.IntN(40)
			var entries []ingest.Stored
			for range 1 + random.IntN(8) {
				e := r.entry(begin+random.Int64N(span)*int64(random.IntN(2)), "")
				e.Environment = environments[random.IntN(len(environments))]
				entries, all = append(entries, e), append(all, ingest.Found{Stored: e, Project: project})
			}
			blocks = append(blocks, r.block(organization, project, entries...))
		}
		r.keep(append(blocks, r.block("org_other", "prj_0", r.entry(3, "")))...)
		for range 6 {
			search := someSearch(random)
			got := r.pageThrough(r.both(postgres.Limits{Bytes: 1 + random.IntN(8000), Time: time.Minute}), organization, search)
			if want := filter(all, search); !slices.Equal(got, want) {
				t.Fatalf("seed %d: found %d entries, want %d: search %+v", seed, len(got), len(want), search)
			}
		}
	}
}

var environments = []string{"prod", "staging", "dev"}

func someSearch(random *rand.Rand) ingest.Search {
	search := ingest.Search{Limit: 1 + random.IntN(40), OldestFirst: random.IntN(2) == 0}
	if random.IntN(2) == 0 {
		search.Environment = environments[random.IntN(len(environments))]
	}
	if random.IntN(2) == 0 {
		search.Project = fmt.Sprint("prj_", random.IntN(3))
	}
	if random.IntN(2) == 0 {
		search.From = &ingest.Instant{Seconds: random.Int64N(50_000)}
	}
	if random.IntN(2) == 0 {
		search.To = &ingest.Instant{Seconds: random.Int64N(1 << 20)}
	}
	return search
}

func filter(all []ingest.Found, search ingest.Search) (texts []string) {
	wanted := slices.DeleteFunc(slices.Clone(all), func(f ingest.Found) bool {
		return !search.Matches(&f.Stored) || search.Project != "" && search.Project != f.Project
	})
	slices.SortFunc(wanted, func(a, b ingest.Found) int {
		if search.OldestFirst {
			return a.Compare(b.Place)
		}
		return b.Compare(a.Place)
	})
	for _, f := range wanted {
		texts = append(texts, string(f.Text))
	}
	return texts
}

func (r *rig) pageThrough(store store, organization string, search ingest.Search) (texts []string) {
	r.t.Helper()
	for range 5000 {
		result, err := store.Search(r.t.Context(), pg.Organization(organization), search)
		testenv.Must(r.t, err)
		for _, f := range result.Found {
			texts = append(texts, string(f.Text))
		}
		if result.Next == nil {
			return texts
		}
		search.Start = *result.Next
	}
	r.t.Fatal("the pages never end")
	return nil
}

// The limit of a page holds for blocks from the year 0 to now with a
// cursor in the year 0.
func TestTheLimitAppliesWhateverTheCursor(t *testing.T) {
	r := newRig(t)
	const year0, many = -62_167_219_200, 40
	var blocks []postgres.Block
	for i := range int64(many) {
		blocks = append(blocks, r.block("org_1", "prj_1", r.entry(year0+i, strings.Repeat("x", 20<<10)), r.entry(noon.Unix()+i, strings.Repeat("y", 20<<10))))
	}
	r.keep(blocks...)
	const limit, block = 200 << 10, 42 << 10
	for _, oldestFirst := range []bool{false, true} {
		store := r.store(postgres.Limits{Bytes: limit, Time: time.Minute})
		after := ingest.Place{Time: ingest.Instant{Seconds: year0 + 15}}
		search := ingest.Search{Limit: 10, OldestFirst: oldestFirst, Start: ingest.Position{After: &after}}
		result, err := store.Search(t.Context(), "org_1", search)
		testenv.Must(t, err)
		if read, incomplete := r.read(); read > limit+block || incomplete != 1 || !result.Incomplete || result.Next == nil {
			t.Errorf("a page read %.0f bytes of %d, incomplete %t, next %v", read, many*block, result.Incomplete, result.Next)
		}
		got := r.pageThrough(store, "org_1", search)
		want := 15 // of the year 0, before the cursor
		if oldestFirst {
			want = 25 + many // and behind it, with all of now
		}
		if len(got) != want {
			t.Errorf("oldest first %t: %d entries, want %d", oldestFirst, len(got), want)
		}
	}
}

// A search for an environment reads only blocks that may hold it, and
// old blocks, of these at most its share at once.
func TestEnvironmentsLeaveBlocksPacked(t *testing.T) {
	r := newRig(t)
	of := func(environment string, second int64) ingest.Stored {
		e := r.entry(noon.Unix()+second, strings.Repeat("x", 20<<10))
		e.Environment = environment
		return e
	}
	var blocks []postgres.Block
	for i := range int64(40) {
		blocks = append(blocks, r.block("org_1", "prj_1", of("prod", i)))
	}
	r.keep(append(blocks, r.block("org_1", "prj_1", of("dev", -1), of("prod", -1)))...)
	search := ingest.Search{Limit: 10, Environment: "dev"}
	const limit, block = 200 << 10, 42 << 10
	store := r.store(postgres.Limits{Bytes: limit, Time: time.Minute})
	result, err := store.Search(t.Context(), "org_1", search)
	if read, _ := r.read(); err != nil || len(result.Found) != 1 || result.Incomplete || read > block+100*128 {
		t.Errorf("%d found, incomplete %t, %.0f bytes read, %v", len(result.Found), result.Incomplete, read, err)
	}
	r.forgetEnvironments()
	store = r.store(postgres.Limits{Bytes: limit, Time: time.Minute})
	result, err = store.Search(t.Context(), "org_1", search)
	if read, incomplete := r.read(); err != nil || incomplete != 1 || !result.Incomplete || read > limit+block {
		t.Errorf("of before: incomplete %t, %.0f bytes read, %v", result.Incomplete, read, err)
	}
	if got := r.pageThrough(store, "org_1", search); len(got) != 1 {
		t.Errorf("of before: %d found", len(got))
	}
}

// forgetEnvironments makes all blocks like old ones.
func (r *rig) forgetEnvironments() {
	r.t.Helper()
	r.spoil(func(tx pgx.Tx) error {
		_, err := tx.Exec(r.t.Context(), `UPDATE blocks SET environments = 0`)
		return err
	})
}

// The newest page of an organization is found in its newest blocks,
// whatever lies in its past and future.
func TestTheNewestPageTouchesTheNewestBlocks(t *testing.T) {
	r := newRig(t)
	var blocks []postgres.Block
	for i := range int64(300) {
		blocks = append(blocks, r.block("org_1", "prj_1", r.entry(noon.Unix()+i, "")), r.block("org_1", "prj_2", r.entry(-i*1_000_000, strings.Repeat("z", 1000)), r.entry(-i, "")))
	}
	r.keep(blocks...)
	store := r.store(postgres.DefaultLimits())
	result, err := store.Search(t.Context(), "org_1", ingest.Search{Limit: 5})
	if err != nil || len(result.Found) != 5 || result.Incomplete {
		t.Fatalf("%d entries, incomplete %t, %v", len(result.Found), result.Incomplete, err)
	}
	if read, _ := r.read(); read > 8*1024 {
		t.Errorf("the newest page read %.0f bytes", read)
	}
}

// A search for fields of which each is frequent, and both together are
// rare, reads the columns of most blocks and not their texts.
func TestFrequentFieldsThatAreRareTogether(t *testing.T) {
	r := newRig(t)
	var want []string
	var blocks []postgres.Block
	for b := range 60 {
		var entries []ingest.Stored
		for i := range 100 {
			e := r.entry(int64(b*100+i), "")
			service, status := []string{"cart", "pay"}[i%2], 200+300*(i%2)
			if b%20 == 3 && i == 50 {
				status = 500
				want = append(want, e.Time.String())
			}
			e.Text = fmt.Appendf(nil, `{"metadata":{"service":%q,"status":%d},"padding":%q}`, service, status, strings.Repeat("x", 1000))
			entries = append(entries, e)
		}
		blocks = append(blocks, r.block("org_1", "prj_1", entries...))
	}
	r.keep(blocks...)
	slices.Reverse(want)
	store := r.store(postgres.DefaultLimits())
	for _, query := range []string{"service:cart status:500", "status:>=500 -service:pay", "status:500 -service:pay level:info"} {
		before, _ := r.read()
		result, err := store.Search(t.Context(), "org_1", ingest.Search{Query: mustQuery(query), Limit: 10})
		testenv.Must(t, err)
		var got []string
		for _, found := range result.Found {
			got = append(got, found.Time.String())
		}
		after, _ := r.read()
		if !slices.Equal(got, want) || after-before > 1_500_000 {
			t.Errorf("%s: found %s by reading %.0f bytes, want %s by less than a quarter of 6 MB", query, got, after-before, want)
		}
	}
}

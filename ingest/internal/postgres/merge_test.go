package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

func (r *rig) merger(store *postgres.Store, clock func() time.Time) *postgres.Merger {
	r.metrics = prometheus.NewRegistry()
	return postgres.NewMerger(postgres.MergerConfig{
		Store: store, Pool: r.pool, NewID: uuid.NewString, Clock: clock, Metrics: r.metrics, Logger: slog.New(slog.DiscardHandler),
	})
}

// merge merges everything mergeable a week after receipt, when all
// spans are closed.
func (r *rig) merge() {
	r.t.Helper()
	later := func() time.Time { return time.Now().AddDate(0, 0, 7) }
	testenv.Must(r.t, r.merger(r.store(postgres.DefaultLimits()), later).RunOnce(r.t.Context()))
}

func (r *rig) system(fn func(tx pgx.Tx) error) {
	r.t.Helper()
	r.within(r.pool, fn)
}

// spoil runs fn as the tables' owner, who may do what the server can't.
func (r *rig) spoil(fn func(tx pgx.Tx) error) {
	r.t.Helper()
	r.within(r.owner, fn)
}

func (r *rig) within(pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	r.t.Helper()
	err := pg.InTxAsSystem(r.t.Context(), pool, func(tx pgx.Tx) error {
		return fn(tx)
	})
	testenv.Must(r.t, err)
}

func (r *rig) count(query string, args ...any) (n int) {
	r.t.Helper()
	r.system(func(tx pgx.Tx) error { return tx.QueryRow(r.t.Context(), query, args...).Scan(&n) })
	return n
}

// erase erases a project like an eraser, but at once.
func (r *rig) erase(organization, project string) {
	r.t.Helper()
	of := erasure.Deletion{Organization: organization, Project: project}
	r.system(func(tx pgx.Tx) error { return erasure.Begin(r.t.Context(), tx, of, noon, noon) })
	for _, table := range postgres.Erasable(nil) {
		r.system(func(tx pgx.Tx) error {
			_, _, err := table.Erase(r.t.Context(), tx, of, "", 100_000)
			return err
		})
	}
}

// A pager pages through a search while the store changes.
type pager struct {
	store  *postgres.Store
	search ingest.Search
	got    []ingest.Found
	begun  int // number of entries at its start
	ended  bool
}

func (p *pager) page(r *rig, organization string) {
	r.t.Helper()
	result, err := p.store.Search(r.t.Context(), pg.Organization(organization), p.search)
	testenv.Must(r.t, err)
	p.got = append(p.got, result.Found...)
	if p.ended = result.Next == nil; !p.ended {
		p.search.Start = *result.Next
	}
}

// check compares a pager's entries with a filter over those always
// there and those ever there.
func (p *pager) check(t *testing.T, seed uint64, all []ingest.Found, erased map[string]bool) {
	t.Helper()
	search := p.search
	search.Start = ingest.Position{}
	var got []string
	for i, f := range p.got {
		if i > 0 && (f.Compare(p.got[i-1].Place) > 0) != search.OldestFirst {
			t.Fatalf("seed %d: %s comes behind %s: search %+v", seed, f.Text, p.got[i-1].Text, search)
		}
		got = append(got, string(f.Text))
	}
	ever, kept := filter(all, search), slices.DeleteFunc(slices.Clone(all[:p.begun]), func(f ingest.Found) bool { return erased[f.Project] })
	for _, text := range got {
		if !slices.Contains(ever, text) {
			t.Fatalf("seed %d: found %s, which is not wanted: search %+v", seed, text, search)
		}
	}
	for _, text := range filter(kept, search) {
		if !slices.Contains(got, text) {
			t.Fatalf("seed %d: %s is lost: search %+v", seed, text, search)
		}
	}
}

// A search finds each entry that stays once and in order, whatever is
// written, merged and erased between its pages.
func TestPagesFindEachEntryOnceWhileBlocksAreMerged(t *testing.T) {
	r := newRig(t)
	merged := 0
	for seed := range uint64(6) {
		random, organization := rand.New(rand.NewPCG(seed, 9)), fmt.Sprint("org_", seed)
		var all []ingest.Found
		erased := map[string]bool{}
		write := func() {
			for range 1 + random.IntN(6) {
				project, begin, span := fmt.Sprint("prj_", random.IntN(3)), random.Int64N(40_000), int64(1)<<random.IntN(30)
				var entries []ingest.Stored
				for range 1 + random.IntN(8) {
					e := r.entry(begin+random.Int64N(span)*int64(random.IntN(2)), "")
					entries, all = append(entries, e), append(all, ingest.Found{Stored: e, Project: project})
				}
				if !erased[project] {
					r.keep(r.block(organization, project, entries...))
				}
			}
		}
		for range 4 {
			write()
		}
		var pagers []*pager
		for range 60 {
			switch dice := random.IntN(20); {
			case dice < 3 && len(pagers) < 8:
				store := r.store(postgres.Limits{Bytes: 1 + random.IntN(6000), Time: time.Minute})
				pagers = append(pagers, &pager{store: store, search: someSearch(random), begun: len(all)})
			case dice < 6:
				write()
			case dice < 8:
				r.merge()
			case dice == 8 && random.IntN(3) == 0:
				project := fmt.Sprint("prj_", random.IntN(3))
				erased[project] = true
				r.erase(organization, project)
			case len(pagers) > 0:
				if p := pagers[random.IntN(len(pagers))]; !p.ended {
					p.page(r, organization)
				}
			}
		}
		merged += r.count(`SELECT coalesce(sum(merges), 0) FROM merge_counts WHERE organization = $1`, organization)
		for _, p := range pagers {
			for range 5000 {
				if p.ended {
					break
				}
				p.page(r, organization)
			}
			if !p.ended {
				t.Fatalf("seed %d: the pages never end: search %+v", seed, p.search)
			}
			p.check(t, seed, all, erased)
		}
	}
	if merged < 20 {
		t.Errorf("only %d merges", merged)
	}
}

// A page that stopped among blocks continues after they are merged; one
// too many merges behind begins again after its place.
func TestAPageGoesOnBehindMerges(t *testing.T) {
	r := newRig(t)
	const year0, many = -62_167_219_200, 40
	var blocks []postgres.Block
	for i := range int64(many) {
		blocks = append(blocks, r.block("org_1", "prj_1", r.entry(year0+i, strings.Repeat("x", 1<<10)), r.entry(noon.Unix()-1e9+i, "")))
	}
	r.keep(blocks...)
	after := ingest.Place{Time: ingest.Instant{Seconds: year0 + 15}}
	search := ingest.Search{Limit: 50, Start: ingest.Position{After: &after}}
	limited := postgres.Limits{Bytes: 8 << 10, Time: time.Minute}
	for len(search.Start.Leads) == 0 {
		result, err := r.store(limited).Search(t.Context(), "org_1", search)
		if err != nil || result.Next == nil {
			t.Fatalf("%d found, next %v, %v", len(result.Found), result.Next, err)
		}
		search.Start = *result.Next
	}
	r.merge()
	if left := r.count(`SELECT count(*) FROM blocks`); left != 1 {
		t.Fatalf("%d blocks are left", left)
	}
	if got := r.pageThrough(r.store(limited), "org_1", search); len(got) != 15 {
		t.Errorf("%d entries behind the place, want 15", len(got))
	}
	r.system(func(tx pgx.Tx) error { // as the pruner does
		_, err := tx.Exec(t.Context(), `DELETE FROM merged_blocks`)
		return err
	})
	if got := r.pageThrough(r.store(limited), "org_1", search); len(got) != 15 {
		t.Errorf("%d entries behind the place where the merges are forgotten, want 15", len(got))
	}
}

// A deletion during a waiting merge holds, and no merge blocks a deletion.
func TestAMergeBringsNothingBack(t *testing.T) {
	r := newRig(t)
	for i := range int64(20) {
		r.keep(r.block("org_1", "prj_1", r.entry(noon.Unix()+i, "")), r.block("org_1", "prj_2", r.entry(noon.Unix()+i, "")))
	}
	of := erasure.Deletion{Organization: "org_1", Project: "prj_1"}
	r.system(func(tx pgx.Tx) error { return erasure.Begin(t.Context(), tx, of, noon, noon) })
	r.merge()
	if left := r.count(`SELECT count(*) FROM blocks WHERE project = 'prj_1'`); left != 20 {
		t.Errorf("blocks of a deleted project were merged into %d", left)
	}
	if left := r.count(`SELECT count(*) FROM blocks WHERE project = 'prj_2'`); left != 1 {
		t.Errorf("%d blocks are left of another project, want 1", left)
	}
	r.erase("org_1", "prj_1")
	if left := r.count(`SELECT count(*) FROM blocks WHERE project = 'prj_1'`) + r.count(`SELECT count(*) FROM small_blocks`); left != 0 {
		t.Errorf("%d rows are left of a deleted project", left)
	}
	r.erase("org_1", "")
	if left := r.count(`SELECT count(*) FROM merged_blocks`) + r.count(`SELECT count(*) FROM merge_counts`); left != 0 {
		t.Errorf("%d rows are left of a deleted organization", left)
	}
}

// Unmergeable blocks stay, are retried later, and block no others.
func TestADamagedBlockKeepsNobodyWaiting(t *testing.T) {
	r := newRig(t)
	var blocks []postgres.Block
	for i := range int64(40) {
		blocks = append(blocks, r.block(fmt.Sprint("org_", i%2), "prj_1", r.entry(noon.Unix()+i, "")))
	}
	r.keep(blocks...)
	r.spoil(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE blocks SET texts = '' WHERE block = $1`, blocks[2].ID)
		return err
	})
	later := time.Now().AddDate(0, 0, 7)
	err := r.merger(r.store(postgres.DefaultLimits()), func() time.Time { return later }).RunOnce(t.Context())
	if err == nil || !strings.Contains(err.Error(), "prj_1 on 2026-11-21") {
		t.Errorf("%v, want one that names the project and the day", err)
	}
	if damaged, others := r.count(`SELECT count(*) FROM blocks WHERE organization = 'org_0'`), r.count(`SELECT count(*) FROM blocks WHERE organization = 'org_1'`); damaged != 20 || others != 1 {
		t.Errorf("%d blocks beside the damaged one, want 20; %d of the other organization, want 1", damaged, others)
	}
	if again := r.count(`SELECT count(*) FROM small_blocks WHERE due_at > $1`, later); again != 1 {
		t.Errorf("%d projects' days are looked at later, want 1", again)
	}
}

// Concurrent replicas merge each block once.
func TestReplicasShareMerges(t *testing.T) {
	r := newRig(t)
	var blocks []postgres.Block
	for i := range int64(600) {
		blocks = append(blocks, r.block(fmt.Sprint("org_", i%3), fmt.Sprint("prj_", i%9), r.entry(noon.Unix()+i, "")))
	}
	r.keep(blocks...)
	later := func() time.Time { return time.Now().AddDate(0, 0, 7) }
	failed := make(chan error, 4)
	store := r.store(postgres.DefaultLimits())
	for range cap(failed) {
		merger := r.merger(store, later)
		go func() { failed <- merger.RunOnce(context.WithoutCancel(t.Context())) }()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if left, entries := r.count(`SELECT count(*) FROM blocks`), r.count(`SELECT sum(n) FROM blocks, unnest(entries) AS n`); left != 9 || entries != 600 {
		t.Errorf("%d blocks of %d entries, want 9 of 600", left, entries)
	}
}

// holdBlocks makes merges wait for the present blocks until letGo is called.
func (r *rig) holdBlocks() (letGo func()) {
	r.t.Helper()
	ctx := context.WithoutCancel(r.t.Context())
	tx, err := r.owner.Begin(ctx)
	testenv.Must(r.t, err)
	letGo = func() { _ = tx.Rollback(ctx) }
	r.t.Cleanup(letGo)
	testenv.Must(r.t, pg.AsSystem(ctx, tx))
	if _, err := tx.Exec(ctx, `SELECT FROM blocks FOR UPDATE`); err != nil {
		r.t.Fatal(err)
	}
	return letGo
}

// mergeAside merges in the background and returns once so many merges
// wait for blocks.
func (r *rig) mergeAside(store *postgres.Store, at time.Time, waiting int) <-chan error {
	r.t.Helper()
	merger, merged := r.merger(store, func() time.Time { return at }), make(chan error, 1)
	go func() { merged <- merger.RunOnce(r.t.Context()) }()
	r.await(waiting)
	return merged
}

// await returns once so many transactions wait for others.
func (r *rig) await(waiting int) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		if n := r.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); n != waiting {
			return fmt.Errorf("%d transactions wait, want %d", n, waiting)
		}
		return nil
	})
}

// No other replica merges claimed blocks, even with new ones; these come next.
func TestWritersLeaveAClaimAlone(t *testing.T) {
	r := newRig(t)
	store, later := r.store(postgres.DefaultLimits()), time.Now().AddDate(0, 0, 7)
	r.keep(r.block("org_1", "prj_1", r.entry(noon.Unix(), "")), r.block("org_1", "prj_1", r.entry(noon.Unix()+1, "")))
	letGo := r.holdBlocks()
	merged := r.mergeAside(store, later, 1)
	for i := range int64(3) { // more than the first two, so that they are merged with those
		r.keep(r.block("org_1", "prj_1", r.entry(noon.Unix()+2+i, "")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.merger(store, func() time.Time { return later.Add(30 * time.Second) }).RunOnce(ctx); err != nil {
		t.Errorf("another merged what is claimed: %v", err)
	}
	letGo()
	if err := <-merged; err != nil {
		t.Error(err)
	}
	if left, due := r.count(`SELECT count(*) FROM blocks`), r.count(`SELECT count(*) FROM small_blocks`); left != 1 || due != 0 {
		t.Errorf("%d blocks are left, want 1; %d projects' days are due", left, due)
	}
}

// Of two merges of the same blocks, after an expired claim, one takes
// them; the other retries at once.
func TestAMergeOutlastsItsClaim(t *testing.T) {
	r := newRig(t)
	store, later := r.store(postgres.DefaultLimits()), time.Now().AddDate(0, 0, 7)
	for i := range int64(20) {
		r.keep(r.block("org_1", "prj_1", r.entry(noon.Unix()+i, "")))
	}
	letGo := r.holdBlocks()
	first := r.mergeAside(store, later, 1)
	second := r.mergeAside(store, later.Add(2*time.Minute), 2)
	letGo()
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	if left, entries := r.count(`SELECT count(*) FROM blocks`), r.count(`SELECT sum(n) FROM blocks, unnest(entries) AS n`); left != 1 || entries != 20 {
		t.Errorf("%d blocks of %d entries, want one of 20", left, entries)
	}
	if due := r.count(`SELECT count(*) FROM small_blocks`); due != 0 {
		t.Errorf("%d projects' days rest", due)
	}
}

// Blocks after a merge are merged soon; the rest of an hour when it is closed.
func TestSmallBlocksAreLookedAtAgain(t *testing.T) {
	r := newRig(t)
	now := noon
	clock := func() time.Time { return now }
	store := postgres.NewStore(postgres.Config{Readers: r.pool, Limits: postgres.DefaultLimits(), Clock: clock, Metrics: prometheus.NewRegistry()})
	keep := func(n int64) {
		t.Helper()
		r.system(func(tx pgx.Tx) error {
			return store.Keep(t.Context(), tx, []postgres.Block{r.block("org_1", "prj_1", r.entry(noon.Unix()+n, ""))})
		})
	}
	due := func(want time.Time) {
		t.Helper()
		var at time.Time
		r.system(func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT due_at FROM small_blocks`).Scan(&at) })
		if !at.Equal(want) {
			t.Errorf("due at %v, want %v", at.UTC(), want)
		}
	}
	merger := r.merger(store, clock)
	merge := func() {
		t.Helper()
		testenv.Must(t, merger.RunOnce(t.Context()))
	}
	for n := range int64(16) {
		keep(n)
	}
	due(noon.Add(10 * time.Second))
	merge()
	if left := r.count(`SELECT count(*) FROM blocks`); left != 16 {
		t.Errorf("%d blocks before they are due", left)
	}
	now = noon.Add(time.Minute)
	merge()
	if left, due := r.count(`SELECT count(*) FROM blocks`), r.count(`SELECT count(*) FROM small_blocks`); left != 1 || due != 0 {
		t.Errorf("%d blocks, want one of sixteen; %d due", left, due)
	}
	keep(16)
	now = now.Add(time.Minute)
	merge()
	due(noon.Add(2*time.Hour + 5*time.Minute)) // when the hour is closed
	keep(17)
	due(now.Add(10 * time.Second))
	now = noon.Add(3 * time.Hour)
	merge()
	if left, due := r.count(`SELECT count(*) FROM blocks`), r.count(`SELECT count(*) FROM small_blocks`); left != 2 || due != 0 {
		t.Errorf("%d blocks, want the large one and one; %d due", left, due)
	}
}

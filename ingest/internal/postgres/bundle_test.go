package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/testenv"
)

// padding makes a block that is not merged, so that it is in a bundle.
var padding = " " + strings.Repeat("x", ingest.SmallBlockBytes)

// keepBundles keeps blocks with a few of 200 words each, some of them
// together, and returns their entries.
func (r *rig) keepBundles(random *rand.Rand, organization string) (all []ingest.Found) {
	r.t.Helper()
	for range 40 {
		var blocks []postgres.Block
		for range 1 + random.IntN(12) {
			project, begin := fmt.Sprint("prj_", random.IntN(2)), random.Int64N(40_000)
			var entries []ingest.Stored
			for i := range 1 + random.IntN(3) {
				e := r.entry(begin+random.Int64N(100), fmt.Sprintf(" word%d", random.IntN(200))+padding[:len(padding)*(1-min(i, 1))])
				entries, all = append(entries, e), append(all, ingest.Found{Stored: e, Project: project})
			}
			blocks = append(blocks, r.block(organization, project, entries...))
		}
		r.keep(blocks...)
	}
	return all
}

// Whatever bundles are excluded, and even if the blocks with their filters are
// gone, pages have all matches of the blocks that are there.
func TestBundlesLoseNothing(t *testing.T) {
	r, random := newRig(t), rand.New(rand.NewPCG(1, 2))
	all := r.keepBundles(random, "org_1")
	agree := func() {
		t.Helper()
		for range 100 {
			search := someSearch(random)
			search.Environment, search.Query = "", mustQuery(fmt.Sprintf("word%d OR word%d", random.IntN(200), random.IntN(200)))
			store := r.store(postgres.Limits{Bytes: 1 << (16 + random.IntN(10)), Time: time.Minute})
			store.LookAtBundles(1 + random.IntN(6))
			if got, want := r.pageThrough(store, "org_1", search), filter(all, search); !slices.Equal(got, want) {
				t.Fatalf("found %d entries, want %d: search %+v", len(got), len(want), search)
			}
		}
	}
	agree()
	gone := r.removeHeads()
	all = slices.DeleteFunc(all, func(f ingest.Found) bool { return gone[string(f.Text)] })
	agree()
}

// removeHeads removes some blocks with filters of bundles, as a move does, and returns their texts.
func (r *rig) removeHeads() (texts map[string]bool) {
	r.t.Helper()
	before := r.pageThrough(r.store(postgres.DefaultLimits()), "org_1", ingest.Search{Limit: 1000})
	r.spoil(func(tx pgx.Tx) error {
		return removeBlocks(r.t.Context(), tx, `bundle_words IS NOT NULL AND max_seconds % 2 = 0`)
	})
	after := r.pageThrough(r.store(postgres.DefaultLimits()), "org_1", ingest.Search{Limit: 1000})
	texts = map[string]bool{}
	for _, text := range before {
		texts[text] = !slices.Contains(after, text)
	}
	if len(after) == len(before) || len(after) == 0 {
		r.t.Fatalf("%d of %d entries are left", len(after), len(before))
	}
	return texts
}

// removeBlocks removes blocks as a move does.
func removeBlocks(ctx context.Context, tx pgx.Tx, which string) error {
	rows, err := tx.Query(ctx, `DELETE FROM blocks WHERE `+which+` RETURNING bundle`)
	if err != nil {
		return err
	}
	bundles, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	if err == nil {
		_, err = tx.Exec(ctx, postgres.PartBundles, 30, time.Unix(0, 0), time.Now().AddDate(100, 0, 0), bundles)
	}
	return err
}

// A word that is nowhere costs a look at each bundle, and not at each block.
func TestBundlesAreExcludedAtOnce(t *testing.T) {
	r := newRig(t)
	const bundles, blocks = 10, 32
	for i := range int64(bundles) {
		var bundle []postgres.Block
		for j := range int64(blocks) {
			bundle = append(bundle, r.block("org_1", "prj_1", r.entry(i*blocks+j, padding)))
		}
		r.keep(bundle...)
	}
	store := r.store(postgres.DefaultLimits())
	result, err := store.Search(t.Context(), "org_1", ingest.Search{Limit: 10, Query: mustQuery("absent")})
	testenv.Must(t, err)
	const header, first = 1 << 10, 64 // with lines of filters; so many are looked at before
	if read, _ := r.read(); len(result.Found) > 0 || result.Next != nil || read > header*(first+blocks+bundles) {
		t.Errorf("%d entries found, %.0f bytes read", len(result.Found), read)
	}
}

// Moves that have blocks of one bundle end at once.
func TestMovesOfABundleEndTogether(t *testing.T) {
	r := newRig(t)
	const blocks, rounds = 32, 5
	moves := &postgres.Moves{
		Pool: r.pool, Store: r.store(postgres.DefaultLimits()),
		Limits: postgres.MoveLimits{Bytes: blocks / 2 * len(padding), Entries: 1000, Least: 1, Lease: time.Minute},
	}
	for range rounds {
		var bundle []postgres.Block
		for i := range int64(blocks) {
			bundle = append(bundle, r.block("org_1", "prj_1", r.entry(i, padding)))
		}
		r.keep(bundle...)
		var claimed [2]*postgres.Move
		for i := range claimed {
			var err error
			claimed[i], err = moves.Claim(t.Context(), time.Now())
			testenv.Must(t, err)
		}
		letGo := r.holdBlocks()
		var ends errgroup.Group
		for _, move := range claimed {
			ends.Go(func() error { return moves.Finish(t.Context(), move) })
		}
		r.await(2)
		letGo()
		if err := ends.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if left := r.count(`SELECT count(*) FROM blocks`); left != 0 {
		t.Errorf("%d blocks are left", left)
	}
}

package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/testenv"
)

// A block that can't be read fails the page that needs it, and not one that ends before it.
func TestADamagedBlockAheadIsNotNeeded(t *testing.T) {
	r := newRig(t)
	var blocks []postgres.Block
	for i := range int64(10) {
		blocks = append(blocks, r.block("org_1", "prj_1", r.entry(i, "")))
	}
	r.keep(blocks...)
	r.spoil(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE blocks SET texts = 'damaged' WHERE max_seconds = 3`) // the fifth block reads it ahead
		return err
	})
	store := r.store(postgres.DefaultLimits())
	result, err := store.Search(t.Context(), "org_1", ingest.Search{Limit: 5})
	if err != nil || len(result.Found) != 5 {
		t.Errorf("%d entries before the damaged block: %v", len(result.Found), err)
	}
	if result, err := store.Search(t.Context(), "org_1", ingest.Search{Limit: 7}); err == nil {
		t.Errorf("%d entries of a page with a damaged block", len(result.Found))
	}
}

// However many partitions a search reads in turns, few blocks are read ahead in all.
func TestFewBlocksWait(t *testing.T) {
	r := newRig(t)
	const partitions, limit = 16, 80
	var blocks []postgres.Block
	for i := range int64(partitions * 16) {
		block := r.block("org_1", "prj_1", r.entry(i, padding))
		block.Retention = 1000 + int(i%partitions)
		blocks = append(blocks, block)
	}
	r.keep(blocks...)
	result, err := r.store(postgres.DefaultLimits()).Search(t.Context(), "org_1", ingest.Search{Limit: limit})
	testenv.Must(t, err)
	if read, _ := r.read(); len(result.Found) != limit || int(read) > (limit+10)*(len(padding)+512) {
		t.Errorf("found %d entries by reading %.0f bytes, of %d in a block", len(result.Found), read, len(padding))
	}
}

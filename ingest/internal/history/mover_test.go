package history_test

import (
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// What moves is found once: before, between moves, and after all.
func TestAHistoryMoves(t *testing.T) {
	r := newRig(t)
	r.keepSome(60)
	r.isWhole()
	mover := r.mover(r.rows)
	moved, err := mover.Step(t.Context())
	testenv.Must(t, err)
	if !moved {
		t.Fatal("nothing moved")
	}
	r.isWhole()
	r.keepSome(5)
	testenv.Must(t, mover.RunOnce(t.Context()))
	r.isWhole()
	if blocks, rows := r.left(); blocks != 0 || rows != 195 {
		t.Errorf("%d blocks are left, ClickHouse has %d rows of 195", blocks, rows)
	}
}

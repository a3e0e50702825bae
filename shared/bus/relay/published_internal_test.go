package relay

import (
	"fmt"
	"testing"
)

// However many records are marked, few marks stay of each partition; and
// from a loss, however long, the next one is at most eight times as far.
func TestMarksGetSparse(t *testing.T) {
	var marks []mark
	for n := int64(1); n <= 20_000; n++ {
		for _, topic := range []string{"a", "b"} {
			marks = add(marks, mark{Topic: topic, Offset: 2 * n, Position: n, Digest: digest(fmt.Sprint(n))})
		}
	}
	if len(marks) > 100 {
		t.Errorf("%d marks", len(marks))
	}
	for lost := int64(1); lost < 20_000; lost++ {
		var newest int64
		for _, m := range upTo(append([]mark{}, marks...), Cursor{20_000 - lost}) {
			newest = max(newest, m.Position)
		}
		if again := 20_000 - newest; again > 8*lost {
			t.Fatalf("after %d were lost, %d are published again", lost, again)
		}
	}
}

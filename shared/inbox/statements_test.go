package inbox_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A thousand records with idempotency keys take as many queries as one.
func TestAnInboxAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, open(t))
	made := 0
	add := func(n int) int64 {
		records := make([]contract.LogsAccepted, n)
		for i := range records {
			made++
			records[i] = idempotent("1", fmt.Sprint("key ", made), "digest", noon)
			records[i].Batch = fmt.Sprintf("%08x-0000-7000-8000-000000000000", made)
		}
		return statements.Of(func() { filter(t, pool, records...) })
	}
	add(1) // creates the day
	if one, thousand := add(1), add(1000); one == 0 || thousand != one {
		t.Errorf("%d statements for one record, %d for a thousand", one, thousand)
	}
}

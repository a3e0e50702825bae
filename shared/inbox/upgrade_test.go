package inbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/inbox"
)

// appliedBefore stores parts of request 1 as a version did that knew no
// whole requests: it claimed the key "key" with the first part.
func appliedBefore(t *testing.T, pool *pgxpool.Pool, parts int) {
	t.Helper()
	filter(t, pool, record("9", 1)) // creates the partition of the day
	asSystem(t, pool, fmt.Sprintf(`INSERT INTO inbox (day, batch, part) SELECT '%s', '%s', part FROM generate_series(1, %d) AS part`,
		noon.Format(time.DateOnly), batch("1"), parts))
	asSystem(t, pool, fmt.Sprintf(`INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest) VALUES ('key', '%s', '%s', 'same')`,
		noon.Format(time.RFC3339), batch("1")))
}

// A request continues after an upgrade in its middle, and counts for
// its key from then on.
func TestARequestGoesOnAfterAnUpgrade(t *testing.T) {
	pool := open(t)
	appliedBefore(t, pool, 1)
	verdicts, rest := take(t, pool, keyed("key", "same", noon, parts("1", 2, 3)...)...)
	if want := []inbox.Verdict{partial, fresh}; !slices.Equal(verdicts, want) || len(rest) != 2 {
		t.Errorf("verdicts = %v, want %v; the effect is that of %q", verdicts, want, rest)
	}
	if got := filter(t, pool, idempotent("2", "key", "same", noon), idempotent("3", "key", "other", noon)); !slices.Equal(got, []inbox.Verdict{replayed, reused}) {
		t.Errorf("verdicts = %v, want a replay and a reuse", got)
	}
}

// A request published in part before an upgrade does not block a whole
// one; one published whole does.
func TestARequestIsSentAgainAfterAnUpgrade(t *testing.T) {
	for _, test := range []struct {
		name   string
		before int // parts that were applied
		digest string
		want   []inbox.Verdict
	}{
		{"in part", 1, "same", []inbox.Verdict{partial, partial, fresh}},
		{"in part, up to the last", 2, "same", []inbox.Verdict{partial, partial, fresh}},
		{"whole", 3, "same", []inbox.Verdict{replayed, replayed, replayed}},
		{"another body", 1, "other", []inbox.Verdict{reused, reused, reused}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, after := range []time.Duration{0, time.Minute} {
				pool := open(t)
				appliedBefore(t, pool, test.before)
				again := func(digit string) []inbox.Verdict {
					return filter(t, pool, keyed("key", test.digest, noon.Add(after), parts(digit, 1, 2, 3)...)...)
				}
				if got := again("2"); !slices.Equal(got, test.want) {
					t.Errorf("verdicts = %v, want %v", got, test.want)
				}
				if got := again("3"); slices.Contains(got, fresh) {
					t.Errorf("verdicts = %v of a third copy", got)
				}
			}
		})
	}
}

// A request of one record that counted before an upgrade still counts.
func TestAReplayAfterAnUpgrade(t *testing.T) {
	pool := open(t)
	appliedBefore(t, pool, 1)
	if got := filter(t, pool, idempotent("2", "key", "same", noon.Add(time.Minute))); !slices.Equal(got, []inbox.Verdict{replayed}) {
		t.Errorf("verdicts = %v, want a replay", got)
	}
}

package inbox_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// longAgo is forgotten by noon.
var longAgo = noon.AddDate(0, 0, -9)

// prunedAtNoon stores old records as if they came days ago, and prunes
// while others are current.
func prunedAtNoon(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	filter(t, pool, idempotent("9", "young", "d", noon))
	asSystem(t, pool, `UPDATE inbox_held SET held_at = accepted_at`)
	clock := func() time.Time { return noon }
	pruner := prune.New(prune.Config{
		Pool: pool, Tables: inbox.Tables, Clock: clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	testenv.Must(t, pruner.RunOnce(t.Context()))
}

// park parks a record of acme.
func park(t *testing.T, pool *pgxpool.Pool, key string) {
	t.Helper()
	asSystem(t, pool, fmt.Sprintf(`INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason)
		VALUES ('acme', 'test', 'weir.logs.v1', 0, 0, now(), '{ce_id,%s,%s}', ARRAY['x', '%s', '%s']::bytea[], 'test')`,
		contract.HeaderIdempotency, contract.HeaderBatch, key, batch("1")))
}

// A parked part completes its request when it is replayed, though the
// inbox has forgotten the day.
func TestAPartIsReplayedLate(t *testing.T) {
	pool := openOwned(t)
	filter(t, pool, keyed("", "", longAgo, parts("1", 1, 2)...)...)
	park(t, pool, "")
	prunedAtNoon(t, pool)
	verdicts, whole := take(t, pool, keyed("", "", longAgo, parts("1", 2, 3)...)...)
	if want := []inbox.Verdict{duplicate, fresh}; !slices.Equal(verdicts, want) || !slices.Equal(whole, []string{"1/1 line 1", "1/2 line 2", "1/3 line 3"}) {
		t.Errorf("verdicts = %v, want %v; the effect is that of %q", verdicts, want, whole)
	}
	if left := heldOf(t, pool, "1"); left != 0 {
		t.Errorf("%d parts are kept", left)
	}
}

// Parts of an abandoned request are deleted after a week, also if the
// missing one was parked and discarded.
func TestAbandonedPartsAreDeleted(t *testing.T) {
	pool := openOwned(t)
	filter(t, pool, keyed("", "", longAgo, parts("1", 1, 2)...)...)
	park(t, pool, "")
	asSystem(t, pool, `UPDATE bus_parked SET header_names = '{}', header_values = '{}'`)
	prunedAtNoon(t, pool)
	if left := heldOf(t, pool, "1"); left != 0 {
		t.Errorf("%d parts are kept", left)
	}
}

// A parked record keeps the parts of its own request, and no others.
func TestParkedRecordKeepsItsPartsOnly(t *testing.T) {
	pool := openOwned(t)
	filter(t, pool, keyed("", "", longAgo, append(parts("1", 1), parts("2", 1)...)...)...)
	park(t, pool, "")
	prunedAtNoon(t, pool)
	if waited, other := heldOf(t, pool, "1"), heldOf(t, pool, "2"); waited != 1 || other != 0 {
		t.Errorf("of the request with a parked part %d parts are kept, of another %d", waited, other)
	}
}

// A part replayed late does not count if its request was sent again and
// counted, however long ago.
func TestAPartOfARequestThatWasSentAgainIsReplayedLate(t *testing.T) {
	pool := openOwned(t)
	filter(t, pool, keyed("key", "same", longAgo, parts("1", 1, 2)...)...)
	filter(t, pool, keyed("key", "same", longAgo, parts("2", 1, 2, 3)...)...)
	park(t, pool, "key")
	prunedAtNoon(t, pool)
	if got := filter(t, pool, keyed("key", "same", longAgo, parts("1", 3)...)...); !slices.Equal(got, []inbox.Verdict{replayed}) {
		t.Errorf("verdicts = %v, want a replay", got)
	}
}

// A lane more than a week behind finds all that the inbox has seen of
// it, though the others are current.
func TestALaneIsAWeekBehind(t *testing.T) {
	pool := openOwned(t)
	asSystem(t, pool, `INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since)
		VALUES ('acme', 'test', 'weir.logs.v1', 0, gen_random_uuid(), 0, 9, 10, 10, '`+longAgo.Format(time.RFC3339)+`')`)
	single := idempotent("2", "key", "same", longAgo)
	again := idempotent("3", "key", "same", longAgo)
	filter(t, pool, append(keyed("", "", longAgo, parts("1", 1)...), single)...)
	prunedAtNoon(t, pool)
	got := filter(t, pool, append(keyed("", "", longAgo, parts("1", 1, 2, 3)...), single, again)...)
	if want := []inbox.Verdict{duplicate, partial, fresh, duplicate, replayed}; !slices.Equal(got, want) {
		t.Errorf("verdicts = %v, want %v", got, want)
	}
}

// A lane that has caught up has its parts as well: they outlive the day
// of the inbox.
func TestAPartOutlivesItsDay(t *testing.T) {
	pool := openOwned(t)
	filter(t, pool, keyed("", "", longAgo, parts("1", 1)...)...)
	asSystem(t, pool, `DROP TABLE inbox_`+longAgo.Format("20060102"))
	if got := filter(t, pool, keyed("", "", longAgo, parts("1", 1, 2)...)...); !slices.Equal(got, []inbox.Verdict{duplicate, partial}) {
		t.Errorf("verdicts = %v, want a duplicate and a part", got)
	}
	got, whole := take(t, pool, keyed("", "", longAgo, parts("1", 3)...)...)
	if !slices.Equal(got, []inbox.Verdict{fresh}) || len(whole) != 3 {
		t.Errorf("verdicts = %v; the effect is that of %q", got, whole)
	}
}

package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

const schema = "notes"

// A rig is a primary with one table, and a reader of its replica.
type rig struct {
	*postgrestest.Pair

	primary *pgxpool.Pool
	clock   time.Time
	reader  *replica.Reader
	metrics *prometheus.Registry
	log     strings.Builder
}

func newRig(t *testing.T) *rig {
	r := &rig{Pair: postgrestest.NewPair(t), clock: time.Unix(0, 0)}
	var err error
	r.primary, err = pg.Open(t.Context(), r.URL, schema)
	testenv.Must(t, err)
	t.Cleanup(r.primary.Close)
	for _, statement := range []string{
		`CREATE SCHEMA notes`, `CREATE TABLE notes (organization text, n int)`,
		`ALTER TABLE notes ENABLE ROW LEVEL SECURITY`, `ALTER TABLE notes FORCE ROW LEVEL SECURITY`,
		`CREATE POLICY own ON notes USING (current_setting('weir.organization', true) IN (organization, '*'))`,
	} {
		_, err := r.primary.Exec(t.Context(), statement)
		testenv.Must(t, err)
	}
	r.point(t, r.Replica)
	return r
}

// point sets another replica.
func (r *rig) point(t *testing.T, address string) {
	t.Helper()
	r.metrics = prometheus.NewRegistry()
	r.log.Reset()
	var err error
	r.reader, err = replica.Open(t.Context(), replica.Config{DatabaseURL: httpapi.Secret(address), Wait: time.Second}, replica.Options{
		Schema: schema, Conns: 2, Clock: func() time.Time { return r.clock }, Metrics: r.metrics, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	testenv.Must(t, err)
	t.Cleanup(r.reader.Close)
}

// write adds a note, and returns its number.
func (r *rig) write(t *testing.T, organization string) (n int) {
	t.Helper()
	testenv.Must(t, pg.InTxAsSystem(t.Context(), r.primary, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `INSERT INTO notes SELECT $1, coalesce(max(n), 0) + 1 FROM notes RETURNING n`, organization).Scan(&n)
	}))
	return n
}

// read returns an organization's newest note, and whether a standby answered.
func (r *rig) read(t *testing.T, organization pg.Organization) (n int, standby bool) {
	t.Helper()
	testenv.Must(t, r.reader.Snapshot(t.Context(), r.primary, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, organization); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT coalesce(max(n), 0), pg_is_in_recovery() FROM notes`).Scan(&n, &standby)
	}))
	return n, standby
}

// outcomes returns how often reads had an outcome.
func (r *rig) outcomes(outcome string) float64 {
	families, _ := r.metrics.Gather()
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == outcome {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestReader(t *testing.T) {
	r := newRig(t)
	t.Run("the replica answers with what was just written", r.answersWithTheNewest)
	t.Run("the replica keeps organizations apart", r.keepsApart)
	t.Run("the primary answers for a replica that is behind", r.behind)
	t.Run("the primary answers where the replica cancels", r.cancelled)
	t.Run("the primary answers for what is no replica", r.unusable)
	t.Run("an error of a reader is the answer", r.fails)
}

func (r *rig) answersWithTheNewest(t *testing.T) {
	for range 50 {
		if n, standby := r.read(t, "acme"); !standby || n != r.newest(t, "acme") {
			t.Fatalf("read %d, from a standby: %t", n, standby)
		}
		r.write(t, "acme")
	}
	if got := r.outcomes("answered"); got != 50 {
		t.Errorf("%v reads were answered by the replica, want 50", got)
	}
}

// newest returns the primary's newest note.
func (r *rig) newest(t *testing.T, organization pg.Organization) (n int) {
	t.Helper()
	testenv.Must(t, pg.ReadAs(t.Context(), r.primary, organization, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT coalesce(max(n), 0) FROM notes`).Scan(&n)
	}))
	return n
}

func (r *rig) keepsApart(t *testing.T) {
	r.write(t, "acme")
	if n, standby := r.read(t, "other"); n != 0 || !standby {
		t.Errorf("another organization sees note %d, from a standby: %t", n, standby)
	}
	err := r.reader.Snapshot(t.Context(), r.primary, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM notes`)
		return err
	})
	if err == nil {
		t.Error("a reader could write")
	}
}

func (r *rig) behind(t *testing.T) {
	r.point(t, r.Replica)
	r.Execute(t, r.Standby, `SELECT pg_wal_replay_pause()`)
	written := r.write(t, "acme")
	for _, outcome := range []string{"behind", "rests"} {
		if n, standby := r.read(t, "acme"); n != written || standby || r.outcomes(outcome) != 1 {
			t.Errorf("read %d of %d, from a standby: %t, %s: %v", n, written, standby, outcome, r.outcomes(outcome))
		}
	}
	r.Execute(t, r.Standby, `SELECT pg_wal_replay_resume()`)
	r.clock = r.clock.Add(time.Minute)
	if n, standby := r.read(t, "acme"); n != written || !standby {
		t.Errorf("caught up, it reads %d of %d, from a standby: %t", n, written, standby)
	}
	if log := r.log.String(); !strings.Contains(log, "lacks what the primary has") || !strings.Contains(log, "the replica answers again") {
		t.Errorf("logged %q", log)
	}
}

// The replica cancels a read that keeps it from applying a change.
func (r *rig) cancelled(t *testing.T) {
	r.point(t, r.Replica)
	r.Execute(t, r.Standby, `ALTER SYSTEM SET max_standby_streaming_delay = 0`)
	r.Execute(t, r.Standby, `SELECT pg_reload_conf()`)
	var tries []bool // whether from the standby
	testenv.Must(t, r.reader.Snapshot(t.Context(), r.primary, func(tx pgx.Tx) error {
		var standby bool
		if err := tx.QueryRow(t.Context(), `SELECT pg_is_in_recovery() FROM (SELECT count(*) FROM notes) AS counted`).Scan(&standby); err != nil {
			return err
		}
		if tries = append(tries, standby); !standby {
			return nil
		}
		return r.change(t.Context(), tx)
	}))
	if len(tries) != 2 || !tries[0] || tries[1] || r.outcomes("cancelled") != 1 {
		t.Errorf("tried at a standby: %v, %v cancelled", tries, r.outcomes("cancelled"))
	}
}

// change changes a table that a transaction at the standby has read,
// and returns that transaction's error.
func (r *rig) change(ctx context.Context, tx pgx.Tx) error {
	if _, err := r.primary.Exec(ctx, `ALTER TABLE notes ADD COLUMN more int`); err != nil {
		return err
	}
	for {
		if _, err := tx.Exec(ctx, `SELECT 1`); err != nil {
			return err
		}
	}
}

func (r *rig) unusable(t *testing.T) {
	superuser, err := url.Parse(r.Standby)
	testenv.Must(t, err)
	for seen, address := range map[string]string{
		"bypasses row level security":   superuser.String(),
		"is no standby of the database": r.Primary.URL(),
		"no standby":                    postgrestest.URL(t),
		"connect":                       "postgres://weir@127.0.0.1:1/weir",
	} {
		r.point(t, address)
		if n, standby := r.read(t, "acme"); n != r.newest(t, "acme") || standby || r.outcomes("failed") != 1 {
			t.Errorf("%s: read %d, from a standby: %t, failed: %v", seen, n, standby, r.outcomes("failed"))
		}
		if !strings.Contains(r.log.String(), seen) {
			t.Errorf("logged %q, want %q", r.log.String(), seen)
		}
	}
}

func (r *rig) fails(t *testing.T) {
	r.point(t, r.Replica)
	none, tries := errors.New("there is no such note"), 0
	err := r.reader.Snapshot(t.Context(), r.primary, func(pgx.Tx) error {
		tries++
		return none
	})
	if !errors.Is(err, none) || tries != 1 {
		t.Errorf("tried %d times: %v", tries, err)
	}
}

// Without a replica the primary answers, and nothing is counted.
func TestNoReplica(t *testing.T) {
	metrics := prometheus.NewRegistry()
	none, err := replica.Open(t.Context(), replica.Config{}, replica.Options{Metrics: metrics})
	testenv.Must(t, err)
	defer none.Close()
	pool, err := pg.Open(t.Context(), postgrestest.URL(t), schema)
	testenv.Must(t, err)
	defer pool.Close()
	var one int
	testenv.Must(t, none.Snapshot(t.Context(), pool, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT 1`).Scan(&one) }))
	if counted, err := testutil.GatherAndCount(metrics); one != 1 || counted != 0 || err != nil {
		t.Errorf("read %d, counted %d, %v", one, counted, err)
	}
}

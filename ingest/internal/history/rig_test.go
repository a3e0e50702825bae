package history_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
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

// A rig is a history in two stores of a test.
type rig struct {
	t       *testing.T
	pool    *pgxpool.Pool
	url     string
	limits  postgres.MoveLimits
	rows    *clickhouse.Store
	entries int
	all     []ingest.Found // that were kept
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, pool: pgtest.Open(t, postgres.Schema, postgres.Migrations()...), url: clickhousetest.URL(t),
		limits: postgres.MoveLimits{Bytes: 1 << 20, Entries: 100, Least: 1, Lease: time.Minute},
	}
	r.rows = r.rowsAt(r.url)
	testenv.Must(t, r.rows.Migrate(t.Context(), testenv.Logger(t)))
	return r
}

func (r *rig) rowsAt(url string) *clickhouse.Store {
	r.t.Helper()
	rows, err := clickhouse.New(clickhouse.Config{URL: url, Limits: clickhouse.Limits{Bytes: 256 << 20, Time: time.Minute}, Clock: time.Now})
	testenv.Must(r.t, err)
	return rows
}

func (r *rig) blocks() *postgres.Store {
	return postgres.NewStore(postgres.Config{
		Readers: r.pool, Limits: postgres.DefaultLimits(), Moves: true, Clock: time.Now, Metrics: prometheus.NewRegistry(),
	})
}

func (r *rig) moves() *postgres.Moves {
	return &postgres.Moves{Pool: r.pool, Store: r.blocks(), Limits: r.limits}
}

// mover is one of a process of its own.
func (r *rig) mover(rows *clickhouse.Store) *history.Mover {
	return history.NewMover(history.Config{
		Moves: r.moves(), Rows: rows, NewID: uuid.NewString, Clock: time.Now, Metrics: prometheus.NewRegistry(), Logger: testenv.Logger(r.t),
	})
}

func (r *rig) store() *history.Store {
	return &history.Store{Blocks: r.blocks(), Rows: r.rows, Clock: time.Now, Logger: testenv.Logger(r.t)}
}

// noon is today's: what is past its retention goes.
var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(time.Minute)

func (r *rig) entry(second int64, text string) ingest.Stored {
	r.entries++
	e := ingest.Stored{
		Place:      ingest.Place{Time: ingest.Instant{Seconds: second, Nanos: uint32(r.entries)}, Index: r.entries},  //nolint:gosec // a test's
		ReceivedAt: noon, Level: ingest.Severity(1 + r.entries%5), Environment: []string{"prod", "dev"}[r.entries%2], //nolint:gosec // a test's
	}
	binary.BigEndian.PutUint64(e.Batch[:], uint64(r.entries)) //nolint:gosec // a test's
	if e.Text = []byte(text); text == "" {
		e.Text = fmt.Appendf(nil, `{"message":"entry %d"}`, r.entries)
	}
	return e
}

// keep keeps a block of a project.
func (r *rig) keep(project string, entries ...ingest.Stored) {
	r.t.Helper()
	var builder ingest.Builder
	for _, e := range entries {
		builder.Add(e)
		r.all = append(r.all, ingest.Found{Stored: e, Project: project})
	}
	block := postgres.Block{Block: builder.Build(), ID: uuid.NewString(), Organization: "org_1", Project: project, Retention: 30}
	err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error { return r.blocks().Keep(r.t.Context(), tx, []postgres.Block{block}) })
	testenv.Must(r.t, err)
}

// keepSome keeps so many blocks of a few entries.
func (r *rig) keepSome(blocks int) {
	r.t.Helper()
	for i := range blocks {
		r.keep(fmt.Sprint("prj_", i%3), r.entry(int64(i), ""), r.entry(int64(1000+i), ""), r.entry(int64(i), ""))
	}
}

// isWhole checks that each entry that was kept is found once, by pages and by a
// count, and that ClickHouse has none twice.
func (r *rig) isWhole() {
	r.t.Helper()
	found := r.pageThrough(ingest.Search{Limit: 40})
	want := filter(r.all, ingest.Search{})
	if !slices.Equal(found, want) {
		r.t.Errorf("found %d entries, want %d, each once", len(found), len(want))
	}
	counted, err := r.store().Count(r.t.Context(), "org_1", ingest.Count{}, 1)
	if err != nil || counted.Levels.Sum() != int64(len(want)) {
		r.t.Errorf("counted %d entries, want %d, %v", counted.Levels.Sum(), len(want), err)
	}
	rows, entries, err := r.rows.Verify(r.t.Context(), -1)
	if err != nil || rows != entries {
		r.t.Errorf("ClickHouse has %d rows of %d entries, %v", rows, entries, err)
	}
}

// left is how many blocks PostgreSQL has, and rows ClickHouse.
func (r *rig) left() (blocks int, rows int64) {
	r.t.Helper()
	err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(r.t.Context(), `SELECT count(*) FROM blocks`).Scan(&blocks)
	})
	testenv.Must(r.t, err)
	rows, _, err = r.rows.Verify(r.t.Context(), -1)
	testenv.Must(r.t, err)
	return blocks, rows
}

func (r *rig) pageThrough(search ingest.Search) (texts []string) {
	r.t.Helper()
	store := r.store()
	for range 5000 {
		result, err := store.Search(r.t.Context(), "org_1", search)
		testenv.Must(r.t, err)
		for _, f := range result.Found {
			texts = append(texts, shown(f))
		}
		if result.Next == nil {
			return texts
		}
		search.Start = *result.Next
	}
	r.t.Fatal("the pages never end")
	return nil
}

func shown(f ingest.Found) string {
	return fmt.Sprint(f.Project, f.Time, f.Index, f.Level, f.Environment, f.ReceivedAt, string(f.Text))
}

// filter is a search by a plain loop.
func filter(all []ingest.Found, search ingest.Search) (texts []string) {
	wanted := slices.DeleteFunc(slices.Clone(all), func(f ingest.Found) bool {
		return !search.Matches(&f.Stored) || search.Project != "" && search.Project != f.Project || search.Hidden[f.Project]
	})
	slices.SortFunc(wanted, func(a, b ingest.Found) int {
		if search.OldestFirst {
			return a.Compare(b.Place)
		}
		return b.Compare(a.Place)
	})
	for _, f := range wanted {
		texts = append(texts, shown(f))
	}
	return texts
}

// expire ends all leases, as time does.
func (r *rig) expire() {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), `UPDATE moves SET claimed_until = '-infinity'`)
	testenv.Must(r.t, err)
}

// ask sends a statement to ClickHouse as an organization.
func (r *rig) ask(organization, query string) string {
	r.t.Helper()
	server, database := r.url[:strings.LastIndexByte(r.url, '/')], r.url[strings.LastIndexByte(r.url, '/')+1:]
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, server+"/?database="+database+"&log_comment="+organization, strings.NewReader(query))
	testenv.Must(r.t, err)
	response, err := http.DefaultClient.Do(request)
	testenv.Must(r.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testenv.Must(r.t, err)
	return strings.TrimSpace(string(text))
}

package bus_test

import (
	"fmt"
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
	ingestbus "github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A rig is a log store on PostgreSQL without a broker: the test passes
// the records.
type rig struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *postgres.Store
	logs  *ingestbus.LogStore
	next  int64
}

func newRig(t *testing.T) *rig { return newRigOf(t, postgres.DefaultLimits()) }

// newRigOf returns a rig with limits of a page.
func newRigOf(t *testing.T, limits postgres.Limits) *rig {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	store := postgres.NewStore(postgres.Config{Readers: pool, Limits: limits, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	return &rig{t: t, pool: pool, store: store, logs: &ingestbus.LogStore{Store: store, NewID: uuid.NewString}}
}

// consume applies records in one transaction.
func (r *rig) consume(records ...bus.Record) error {
	return pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error { return r.logs.Consume(r.t.Context(), tx, records) })
}

func (r *rig) mustConsume(records ...bus.Record) {
	r.t.Helper()
	testenv.Must(r.t, r.consume(records...))
}

// all pages through a search.
func (r *rig) all(organization string, search ingest.Search) (texts []string) {
	r.t.Helper()
	for {
		result, err := r.store.Search(r.t.Context(), pg.Organization(organization), search)
		testenv.Must(r.t, err)
		for _, found := range result.Found {
			texts = append(texts, string(found.Text))
		}
		if result.Next == nil {
			return texts
		}
		search.Start = *result.Next
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(second int, level, message string) string {
	at := noon.Add(time.Duration(second) * time.Second).Format(time.RFC3339)
	return fmt.Sprintf(`{"timestamp":"%s","level":"%s","message":%s}`, at, level, message)
}

// record makes the record of a batch of one part.
func (r *rig) record(organization, project string, entries ...string) bus.Record {
	lines := strings.Join(entries, "\n") + "\n"
	return r.recordOf(contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: project, Environment: "prod",
		Key: "key_1", Source: "weir/ingest", Time: noon, Entries: len(entries), Bytes: int64(len(lines) - len(entries)), Lines: []byte(lines),
	})
}

func (r *rig) recordOf(logs contract.LogsAccepted) bus.Record {
	r.next++
	record := bus.Record{Topic: contract.TopicLogs, Offset: r.next, Value: logs.Lines}
	for name, value := range logs.Headers() {
		record.Headers = append(record.Headers, bus.Header{Key: name, Value: []byte(value)})
	}
	return record
}

// Every entry is found once and byte for byte, for any JSON, number of
// blocks and pages.
func TestEveryEntryComesBackByteForByte(t *testing.T) {
	r := newRig(t)
	odd := []string{`"\u0000"`, `"\ud83d\ude00 \u00e9 é"`, `""`, `"a\\\"b\/"`, `"` + strings.Repeat("long ", 2000) + `"`}
	random := rand.New(rand.NewPCG(1, 1))
	var want []string
	for range 40 {
		var entries []string
		for range 50 {
			entries = append(entries, entry(random.IntN(1000), "info", odd[random.IntN(len(odd))]))
		}
		want = append(want, entries...)
		r.mustConsume(r.record("org_1", "prj_1", entries...), r.record("org_1", "prj_1", entry(-1, "info", `"one"`)))
		want = append(want, entry(-1, "info", `"one"`))
	}
	got := r.all("org_1", ingest.Search{Limit: 77})
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d entries came back, want the %d that were accepted", len(got), len(want))
	}
}

// A request of several parts is found once all have come; an incomplete
// one never.
func TestRequestsAreStoredWhole(t *testing.T) {
	r := newRig(t)
	parts := func(entries ...string) (records []bus.Record) {
		batch := uuid.Must(uuid.NewV7()).String()
		for i, text := range entries {
			records = append(records, r.recordOf(contract.LogsAccepted{
				Batch: batch, Part: i + 1, Parts: len(entries), First: i, Organization: "org_1", Project: "prj_1", Environment: "prod", Key: "key_1",
				Source: "weir/ingest", Time: noon, Entries: 1, Bytes: int64(len(text)), Lines: []byte(text + "\n"),
			}))
		}
		return records
	}
	texts := []string{entry(1, "info", `"one"`), entry(2, "info", `"two"`), entry(3, "info", `"three"`)}
	half, whole := parts(texts...), parts(texts...)
	r.mustConsume(half[:2]...)
	r.mustConsume(whole[0], whole[1])
	if got := r.all("org_1", ingest.Search{Limit: 10}); len(got) != 0 {
		t.Errorf("found of half a request: %q", got)
	}
	r.mustConsume(whole[1], whole[2])
	if got := r.all("org_1", ingest.Search{Limit: 10, OldestFirst: true}); !slices.Equal(got, texts) {
		t.Errorf("found %q, want %q", got, texts)
	}
}

// The newest comes first, to the nanosecond, even in years beyond 64
// bits of nanoseconds.
func TestOrder(t *testing.T) {
	r := newRig(t)
	times := []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z", "2026-11-21T12:00:00Z", "2026-11-21T12:00:00.000000001Z", "9999-12-31T23:59:59.999999999Z"}
	var want []string
	for _, at := range times {
		want = append(want, fmt.Sprintf(`{"timestamp":"%s","level":"info","message":""}`, at))
	}
	r.mustConsume(r.record("org_1", "prj_1", want[3], want[0], want[4]), r.record("org_1", "prj_2", want[2], want[1]))
	if got := r.all("org_1", ingest.Search{Limit: 2, OldestFirst: true}); !slices.Equal(got, want) {
		t.Errorf("oldest first: %q, want %q", got, want)
	}
	slices.Reverse(want)
	if got := r.all("org_1", ingest.Search{Limit: 2}); !slices.Equal(got, want) {
		t.Errorf("newest first: %q, want %q", got, want)
	}
}

// Each criterion narrows the search as in the interface.
func TestCriteria(t *testing.T) {
	r := newRig(t)
	early, late := entry(0, "info", `"cart opened"`), entry(10, "error", `"Checkout FAILED\u0021"`)
	staging := `{"timestamp":"2026-11-21T12:00:05Z","level":"warn","message":"slow checkout","environment":"staging"}`
	r.mustConsume(r.record("org_1", "prj_1", early, late), r.record("org_1", "prj_2", staging))
	at := func(second int) *ingest.Instant {
		instant := ingest.InstantOf(noon.Add(time.Duration(second) * time.Second))
		return &instant
	}
	cases := []struct {
		name   string
		search ingest.Search
		want   []string
	}{
		{"all", ingest.Search{}, []string{late, staging, early}},
		{"project", ingest.Search{Project: "prj_1"}, []string{late, early}},
		{"from is included", ingest.Search{From: at(10)}, []string{late}},
		{"to is excluded", ingest.Search{To: at(10)}, []string{staging, early}},
		{"levels", ingest.Search{Levels: ingest.SeveritySet(0).With(ingest.SeverityWarn).With(ingest.SeverityInfo)}, []string{staging, early}},
		{"an entry's own environment", ingest.Search{Environment: "staging"}, []string{staging}},
		{"else the key's", ingest.Search{Environment: "prod"}, []string{late, early}},
		{"a path", ingest.Search{Query: query("-message:nothing timestamp:2*")}, []string{late, staging, early}},
		{"words", ingest.Search{Query: query("checkout failed")}, []string{late}},
		{"nothing", ingest.Search{Query: query("absent")}, nil},
	}
	for _, c := range cases {
		c.search.Limit = 10
		if got := r.all("org_1", c.search); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

// A search that has used its share ends with a cursor, even on an empty
// page, and finds all in the end.
func TestASearchForSomethingRareGoesOnByItsCursor(t *testing.T) {
	r := newRigOf(t, postgres.Limits{Bytes: 1, Time: time.Minute})
	rare := entry(-1000, "info", `"needle"`)
	r.mustConsume(r.record("org_1", "prj_1", rare))
	for i := range 20 {
		r.mustConsume(r.record("org_1", "prj_1", entry(i, "info", `"hay"`), entry(i+5, "info", `"hay"`)))
	}
	result, err := r.store.Search(t.Context(), "org_1", ingest.Search{Limit: 5, Environment: "prod", Levels: ingest.SeveritySet(0).With(ingest.SeverityInfo)})
	if err != nil || len(result.Found) > 5 || result.Next == nil {
		t.Errorf("the first page has %d entries, next %v, %v; want at most 5 and a cursor", len(result.Found), result.Next, err)
	}
	if got := r.all("org_1", ingest.Search{Limit: 5}); len(got) != 41 || got[40] != rare {
		t.Errorf("%d entries in all, want 41 with the rare one last", len(got))
	}
	if got := r.all("org_1", ingest.Search{Limit: 5, Query: query("needle")}); !slices.Equal(got, []string{rare}) {
		t.Errorf("found %q, want the rare one", got)
	}
}

// Times from the year 0 to 9999 in one request make few blocks, none of
// which mixes common and unusual times: the newest page is found as
// fast as without them.
func TestOddTimesLieApart(t *testing.T) {
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 1))
	var entries, newest []string
	for i := range 500 {
		entries = append(entries, fmt.Sprintf(`{"timestamp":"%04d-%02d-%02dT%02d:00:00Z","level":"info","message":"odd"}`,
			random.IntN(10_000), 1+random.IntN(12), 1+random.IntN(28), random.IntN(24)), entry(-i, "info", `"common"`))
		newest = append(newest, entry(-i, "info", `"common"`))
	}
	r.mustConsume(r.record("org_1", "prj_1", entries...))
	var blocks, mixed int
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE max_seconds - min_seconds >= 3600
			AND $1 BETWEEN min_seconds - 3600 AND max_seconds + 3600) FROM blocks`, noon.Unix()).Scan(&blocks, &mixed)
	})
	testenv.Must(t, err)
	if blocks > ingest.MaxSpans || blocks < 3 || mixed > 0 {
		t.Errorf("%d blocks, %d of them wide and with common times", blocks, mixed)
	}
	to := ingest.InstantOf(noon.Add(time.Hour))
	if got := r.all("org_1", ingest.Search{Limit: 100, To: &to})[:100]; !slices.Equal(got, newest[:100]) {
		t.Errorf("the newest of now are %q", got[:3])
	}
}

// A lagging store reads partitions at different places in one
// transaction. A window of a second is in few blocks all the same.
func TestAWindowIsInFewBlocksAfterALag(t *testing.T) {
	r := newRig(t)
	at := func(second int) bus.Record {
		line := entry(second, "info", `"`+strings.Repeat("x", 2000)+`"`)
		record := contract.LogsAccepted{
			Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: "org_1", Project: "prj_1", Environment: "prod",
			Key: "key_1", Source: "weir/ingest", Time: noon.Add(time.Duration(second) * time.Second), Entries: 1, Bytes: int64(len(line)), Lines: []byte(line + "\n"),
		}
		return r.recordOf(record)
	}
	const transactions, places, each = 10, 6, 20
	for i := range transactions {
		var records []bus.Record
		for j := range each {
			for place := range places {
				records = append(records, at(place*500+i*each+j))
			}
		}
		r.mustConsume(records...)
	}
	window := noon.Add(1050 * time.Second).Unix()
	var reach, all int
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE $1 BETWEEN min_seconds AND max_seconds), count(*) FROM blocks`, window).Scan(&reach, &all)
	})
	if err != nil || reach != 1 || all != transactions*places {
		t.Errorf("%d of %d blocks reach over a second, %v; want one of %d", reach, all, err, transactions*places)
	}
}

// Duplicates and replays apply once.
func TestCopiesAreKeptOnce(t *testing.T) {
	r := newRig(t)
	first := r.record("org_1", "prj_1", entry(0, "info", `"once"`))
	again := first
	again.Offset = 99
	r.mustConsume(first, again)
	r.mustConsume(again)
	if got := r.all("org_1", ingest.Search{Limit: 10}); len(got) != 1 {
		t.Errorf("%d entries, want 1", len(got))
	}
}

// A record that differs from its headers is a permanent error, so that
// the bus parks it alone.
func TestABrokenRecordIsNamed(t *testing.T) {
	r := newRig(t)
	broken := map[string]bus.Record{
		"no headers":       {Offset: 7, Value: []byte("{}\n")},
		"a line too few":   r.recordOf(contract.LogsAccepted{Batch: uuid.NewString(), Part: 1, Parts: 1, Organization: "o", Project: "p", Time: noon, Entries: 2, Lines: []byte("{}\n")}),
		"no entry at all":  r.record("org_1", "prj_1", `{"hello":1}`),
		"not even an JSON": r.record("org_1", "prj_1", `}{`),
	}
	for name, record := range broken {
		err := r.consume(r.record("org_1", "prj_1", entry(0, "info", `"good"`)), record)
		if !bus.IsPermanent(err) {
			t.Errorf("%s: err = %v, want a permanent one", name, err)
		}
	}
}

// No search finds another organization's entries, even by its project.
func TestOrganizationsDoNotSeeEachOther(t *testing.T) {
	r := newRig(t)
	r.mustConsume(r.record("org_1", "prj_1", entry(0, "info", `"mine"`)), r.record("org_2", "prj_2", entry(0, "info", `"theirs"`)))
	if got := r.all("org_1", ingest.Search{Limit: 10}); len(got) != 1 || !strings.Contains(got[0], "mine") {
		t.Errorf("org_1 finds %q", got)
	}
	if got := r.all("org_1", ingest.Search{Limit: 10, Project: "prj_2"}); len(got) != 0 {
		t.Errorf("org_1 finds %q in a foreign project", got)
	}
}

func query(text string) ingest.Query {
	parsed, err := ingest.ParseQuery(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

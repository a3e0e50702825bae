package uncounted_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/uncounted"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

var midnight = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// fill publishes requests of one byte each, of two organizations in
// turn, half before midnight and half after.
func fill(t testing.TB, brokers []string, requests int, value []byte) {
	t.Helper()
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	p, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	defer p.Close()
	const perBatch = 5000
	messages := make([]*message.Message, 0, perBatch)
	for i := range requests {
		logs := contract.LogsAccepted{
			Batch: fmt.Sprintf("%08x-0000-7000-8000-000000000000", i), Part: 1, Parts: 1, Organization: fmt.Sprint("org_", i%2), Project: "prj", Environment: "prod",
			Key: "key", Source: "weir/ingest", Time: midnight.Add(time.Duration(i-requests/2) * time.Millisecond), Entries: 1, Bytes: 1,
		}
		m := message.NewMessage(logs.ID(), value)
		m.Metadata = logs.Headers()
		m.Metadata[sharedbus.KeyMetadata] = logs.Project
		if messages = append(messages, m); len(messages) == perBatch || i == requests-1 {
			if _, err := p.PublishContext(t.Context(), contract.TopicLogs, messages...); err != nil {
				t.Fatal(err)
			}
			messages = messages[:0]
		}
	}
}

// owed adds up charges by organization and whether they are of the day before.
func owed(charges []ingest.Charge) map[string]int64 {
	sums := map[string]int64{}
	for _, c := range charges {
		sums[fmt.Sprint(c.Organization, " before ", c.At.Before(midnight))] += c.Bytes
	}
	return sums
}

// owedFrom returns the sums of fill's requests from one on.
func owedFrom(first int64, requests int) map[string]int64 {
	sums := map[string]int64{}
	for i := int(first); i < requests; i++ {
		sums[fmt.Sprint("org_", i%2, " before ", i < requests/2)]++
	}
	return sums
}

func newReader(t testing.TB, brokers []string) (*uncounted.Reader, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	return &uncounted.Reader{Log: &bus.Log{Brokers: brokers}, Pool: pool, Logger: testenv.Logger(t)}, pool
}

// Sums equal the log, from wherever the ledger is; they replace reading
// it and go once counted.
func TestUncounted(t *testing.T) {
	const requests = 3*ingest.StretchOffsets + 1000
	brokers := kafkatest.Brokers(t)
	fill(t, brokers, requests, nil)
	g, pool := newReader(t, brokers)
	read := func(counted int64) map[string]int64 {
		t.Helper()
		charges, err := g.Read(t.Context(), ingest.Positions{0: counted})
		testenv.Must(t, err)
		return owed(charges)
	}
	places := []int64{0, 10, ingest.StretchOffsets, ingest.StretchOffsets + 7, requests - 10, requests}
	check := func(counted int64) {
		t.Helper()
		if got, want := read(counted), owedFrom(counted, requests); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("behind %d: %v, want %v", counted, got, want)
		}
	}
	check(10) // nothing is summed up yet
	testenv.Must(t, g.Sum(t.Context(), ingest.Positions{0: 10}))
	for _, counted := range places {
		check(counted)
	}
	bustest.CutLog(t, brokers, contract.TopicLogs, 3*ingest.StretchOffsets)
	check(ingest.StretchOffsets) // what is summed up is not read
	testenv.Must(t, g.Sum(t.Context(), ingest.Positions{0: requests}))
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM gap_runs`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d stretches are left that are counted, %v", left, err)
	}
}

// A start reads a bounded number of runs, however large the gap. They
// equal the log if the ledger is between two runs or near the end of
// one; inside a run all of it counts. A killed process changes nothing.
func TestUncountedInFewRuns(t *testing.T) {
	const requests, most = 7*ingest.StretchOffsets + 1000, 3
	brokers := kafkatest.Brokers(t)
	fill(t, brokers, requests, nil)
	g, pool := newReader(t, brokers)
	g.TightenForTest(most, 1000)
	read := func(counted int64) string {
		t.Helper()
		charges, err := g.Read(t.Context(), ingest.Positions{0: counted})
		testenv.Must(t, err)
		return fmt.Sprint(owed(charges))
	}
	runs := func() (runs []ingest.StretchRun) {
		t.Helper()
		testenv.Must(t, pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			all, err := postgres.UncountedRuns(t.Context(), tx, topicOf(t, g))
			runs = all[0]
			return err
		}))
		return runs
	}
	check := func(from int64) {
		t.Helper()
		for at := from; at < requests; at += ingest.StretchOffsets / 2 {
			if got, want := read(at), owedFrom(startOf(runs(), at), requests); got != fmt.Sprint(want) {
				t.Errorf("behind %d with runs %v: %v, want %v", at, runs(), got, want)
			}
		}
	}
	testenv.Must(t, g.SumKilledForTest(t.Context(), nil))
	if left := runs(); len(left) > 0 {
		t.Errorf("killed before the commit: %v", left)
	}
	testenv.Must(t, g.Sum(t.Context(), nil))
	if got := runs(); len(got) != most || got[0].First != 0 || got[most-1].After != 7 {
		t.Fatalf("seven stretches are summed up in %v", got)
	}
	check(0)
	testenv.Must(t, g.SumKilledForTest(t.Context(), ingest.Positions{0: 3 * ingest.StretchOffsets}))
	check(0)
	testenv.Must(t, g.Sum(t.Context(), ingest.Positions{0: 3 * ingest.StretchOffsets}))
	check(3 * ingest.StretchOffsets)
	g.TightenForTest(most, 1)
	testenv.Must(t, g.Sum(t.Context(), ingest.Positions{0: 3 * ingest.StretchOffsets}))
	if got := runs(); len(got) > 2 {
		t.Errorf("with too many rows there are %v", got)
	}
	check(3 * ingest.StretchOffsets)
}

// startOf returns where reading begins if the ledger has counted below an offset.
func startOf(runs []ingest.StretchRun, offset int64) int64 {
	for _, r := range runs {
		if r.From() < offset && r.To() > offset+ingest.StretchOffsets {
			return r.From()
		}
	}
	return offset
}

func topicOf(t *testing.T, g *uncounted.Reader) [16]byte {
	t.Helper()
	topic, _, err := g.Log.Extent(t.Context())
	testenv.Must(t, err)
	return topic
}

// Nothing is summed while the ledger's lag is usual; without the
// database the log is read.
func TestUncountedIsReadWhereNothingIsSummed(t *testing.T) {
	brokers := kafkatest.Brokers(t)
	fill(t, brokers, 100, nil)
	g, pool := newReader(t, brokers)
	testenv.Must(t, g.Sum(t.Context(), nil))
	var summed int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM gap_runs`).Scan(&summed); err != nil || summed != 0 {
		t.Errorf("%d stretches are summed, %v", summed, err)
	}
	pool.Close()
	charges, err := g.Read(t.Context(), ingest.Positions{0: 40})
	if got := owed(charges); err != nil || got["org_0 before true"]+got["org_0 before false"] != 30 || got["org_1 before true"]+got["org_1 before false"] != 30 {
		t.Errorf("read %v, %v", got, err)
	}
}

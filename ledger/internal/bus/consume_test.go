package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// partsOf is a request of three parts of 10, 20 and 30 bytes, from an offset on.
func partsOf(t *testing.T, offset int64) (records []sharedbus.Record) {
	t.Helper()
	batch := uuid.Must(uuid.NewV7()).String()
	for part := range 3 {
		logs, err := contract.ParseLogsAccepted(accepted("acme", 0, 0).Header, nil)
		testenv.Must(t, err)
		logs.Batch, logs.Part, logs.Parts, logs.Entries, logs.Bytes = batch, part+1, 3, 1, int64(10*(part+1))
		records = append(records, record(logs.Headers(), 0, offset+int64(part)))
	}
	return records
}

// A request of several parts is charged once, when all have come; a
// partial one never. The ranges still match the log.
func TestRequestsAreChargedWhole(t *testing.T) {
	consumer, pool := newConsumer(t)
	half, whole := partsOf(t, 0), partsOf(t, 2)
	for _, step := range []struct {
		records       []sharedbus.Record
		bytes, counts int64 // charged so far, and entries of them
	}{{half[:2], 0, 0}, {whole[:2], 0, 0}, {whole[2:], 60, 3}} {
		var bytes, entries int64
		err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			if err := consumer.Logs(t.Context(), tx, step.records); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT coalesce(sum(bytes), 0), coalesce(sum(entries), 0) FROM usage_days`).Scan(&bytes, &entries)
		})
		if err != nil || bytes != step.bytes || entries != step.counts {
			t.Errorf("%d bytes of %d entries are charged, want %d of %d; error %v", bytes, entries, step.bytes, step.counts, err)
		}
	}
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		violations, err := postgres.Verify(t.Context(), tx, ledger.DefaultRetention(), time.Now())
		if len(violations) > 0 {
			t.Errorf("the books are unsound: %+v", violations)
		}
		return err
	})
	testenv.Must(t, err)
}

// A request of which rules left nothing is charged what it says, perhaps
// nothing, and the books are sound.
func TestChargesWithoutEntries(t *testing.T) {
	consumer, pool := newConsumer(t)
	var records []sharedbus.Record
	for offset, bytes := range []int64{50, 0} {
		logs, err := contract.ParseLogsAccepted(accepted("acme", 0, 0).Header, nil)
		testenv.Must(t, err)
		logs.Batch, logs.Entries, logs.Bytes = uuid.Must(uuid.NewV7()).String(), 0, bytes
		logs.Idempotency, logs.Digest = fmt.Sprint("key ", offset), "body"
		records = append(records, record(logs.Headers(), 0, int64(offset)))
	}
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if err := consumer.Logs(t.Context(), tx, records); err != nil {
			return err
		}
		var requests, entries, bytes int64
		err := tx.QueryRow(t.Context(), `SELECT sum(requests), sum(entries), sum(bytes) FROM usage_days`).Scan(&requests, &entries, &bytes)
		if err != nil || requests != 2 || entries != 0 || bytes != 50 {
			t.Errorf("%d requests of %d entries and %d bytes are charged: %v", requests, entries, bytes, err)
		}
		violations, err := postgres.Verify(t.Context(), tx, ledger.DefaultRetention(), time.Now())
		if len(violations) > 0 {
			t.Errorf("the books are unsound: %+v", violations)
		}
		return err
	})
	testenv.Must(t, err)
}

// Fillers stand at offsets whose records are lost: the ranges cover them,
// wherever they lie in a transaction, and nothing is charged for them.
func TestFillersAreAccountedFor(t *testing.T) {
	consumer, pool := newConsumer(t)
	filler := func(from, to int64) (records []sharedbus.Record) {
		for offset := from; offset < to; offset++ {
			records = append(records, sharedbus.Record{Topic: contract.TopicLogs, Offset: offset})
		}
		return records
	}
	one := func(offset int64) []sharedbus.Record { return []sharedbus.Record{accepted("acme", 0, offset)} }
	for _, records := range [][]sharedbus.Record{
		slices.Concat(one(0), filler(1, 4)), filler(4, 7), filler(7, 9), slices.Concat(filler(9, 10), one(10)), slices.Concat(one(11), filler(12, 14), one(14)),
	} {
		testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(t.Context(), tx, records) }))
	}
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		var next, bytes int64
		if err := tx.QueryRow(t.Context(), `SELECT max(next_offset), sum(bytes) FROM ranges`).Scan(&next, &bytes); err != nil || next != 15 || bytes != 4*20000 {
			t.Errorf("ranges up to %d with %d bytes, %v", next, bytes, err)
		}
		violations, err := postgres.Verify(t.Context(), tx, ledger.DefaultRetention(), time.Now())
		if len(violations) > 0 {
			t.Errorf("the books are unsound: %+v", violations)
		}
		return err
	})
	testenv.Must(t, err)
}

// A record with an applied batch and part but other content is no
// duplicate: it is parked and counted.
func TestAContradictionIsNoDuplicate(t *testing.T) {
	consumer, pool := newConsumer(t)
	first := accepted("acme", 0, 0)
	apply := func(records ...sharedbus.Record) error {
		return pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(t.Context(), tx, records) })
	}
	again, other := first, first
	again.Offset, other.Offset = 1, 2
	other.Headers = slices.Clone(first.Headers)
	for i, header := range other.Headers {
		if header.Key == contract.HeaderBytes {
			other.Headers[i].Value = []byte("20001")
		}
	}
	testenv.Must(t, apply(first, again))
	err := apply(other)
	var blame *sharedbus.PermanentError
	if !errors.Is(err, bus.ErrConflict) || !errors.As(err, &blame) || !blame.Record || blame.Offset != 2 {
		t.Errorf("error %v", err)
	}
	if n := testutil.ToFloat64(consumer.Conflicts); n != 1 {
		t.Errorf("%v conflicts are counted", n)
	}
}

// newConsumer returns a consumer with a fresh database and no broker.
func newConsumer(t testing.TB) (*bus.Consumer, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	recordTiers(t, pool, ledger.DefaultTiers())
	return &bus.Consumer{Services: services.New(services.Config{Reads: services.Reads{Pool: pool}, Decisions: services.Decisions{Pool: pool}, Clock: time.Now}), Clock: time.Now,
		Conflicts: bus.NewConflicts(prometheus.NewRegistry())}, pool
}

// recordTiers records what tiers allow.
func recordTiers(t testing.TB, pool *pgxpool.Pool, tiers ledger.Tiers) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		return postgres.RecordTerms(t.Context(), tx, ledger.Rules{Tiers: tiers, Thresholds: ledger.DefaultThresholds()}, ledger.DefaultRetention())
	})
	testenv.Must(t, err)
}

// accepted is a record of weir.logs.v1 as the broker returns it.
func accepted(organization string, partition int, offset int64) sharedbus.Record {
	logs := contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: organization + "-project",
		Environment: "prod", Key: "018f0000-0000-7000-8000-000000000000", Source: "weir/ingest", Time: time.Now(), Entries: 100, Bytes: 20000,
	}
	return record(logs.Headers(), partition, offset)
}

func record(headers map[string]string, partition int, offset int64) sharedbus.Record {
	r := sharedbus.Record{Topic: contract.TopicLogs, Partition: partition, Offset: offset}
	for name, value := range headers {
		r.Headers = append(r.Headers, sharedbus.Header{Key: name, Value: []byte(value)})
	}
	return r
}

// Writers take locks in one order (see ledger/internal/postgres): who
// waits for a lock holds none of a later kind. In each case a
// transaction holds an organization's books, another waits for them,
// and then the first continues.
func TestLocksHaveOneOrder(t *testing.T) {
	for name, test := range map[string]struct {
		waits  func(consumer *bus.Consumer, tx pgx.Tx) error
		goesOn func(tx pgx.Tx) error
	}{
		"plans of organizations in another order": {
			func(consumer *bus.Consumer, tx pgx.Tx) error {
				return consumer.Tenants(t.Context(), tx, createdOrganizations("second", "first"))
			},
			func(tx pgx.Tx) error {
				_, err := postgres.LockKnown(t.Context(), tx, []string{"second"})
				return err
			},
		},
		"a charge on a day without a partition": {
			func(consumer *bus.Consumer, tx pgx.Tx) error {
				return consumer.Logs(t.Context(), tx, []sharedbus.Record{accepted("first", 0, 0)})
			},
			func(tx pgx.Tx) error { return postgres.EnsureDays(t.Context(), tx, time.Now()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			consumer, pool := newConsumer(t)
			inTx := func(do func(pgx.Tx) error) error {
				return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(pg.AsSystem(t.Context(), tx), do(tx)) })
			}
			if err := inTx(func(tx pgx.Tx) error {
				return postgres.AddMissing(t.Context(), tx, time.Now(), []string{"first", "second"})
			}); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			err := inTx(func(tx pgx.Tx) error {
				if _, err := postgres.LockKnown(t.Context(), tx, []string{"first"}); err != nil {
					return err
				}
				go func() { waited <- inTx(func(tx pgx.Tx) error { return test.waits(consumer, tx) }) }()
				testenv.Eventually(t, func() error { return blocked(t, pool) })
				return test.goesOn(tx)
			})
			if err := errors.Join(err, <-waited); err != nil {
				t.Error(err)
			}
		})
	}
}

// outcome is a record of weir.outcomes.v1.
func outcome(t *testing.T, kind string, fact any, offset int64) sharedbus.Record {
	t.Helper()
	value, err := json.Marshal(fact)
	testenv.Must(t, err)
	r := record(map[string]string{contract.HeaderType: kind, contract.HeaderID: "e"}, 0, offset)
	r.Topic, r.Value = contract.TopicOutcomes, value
	return r
}

// tally is a record of one process about acme with so many rejected requests.
func tally(process string, sequence, rejected int64) contract.RequestsCounted {
	at := time.Now().UTC()
	return contract.RequestsCounted{Organization: "acme", Process: process, Sequence: sequence, From: at, To: at, Counts: []contract.RequestCount{
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: rejected, Bytes: 11 * rejected},
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeAccepted, Requests: 9, Entries: 9, Bytes: 900, KeyInBody: 1},
	}}
}

func consume(t *testing.T, consumer *bus.Consumer, pool *pgxpool.Pool, records ...sharedbus.Record) error {
	t.Helper()
	return pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Outcomes(t.Context(), tx, records) })
}

// Each tally counts once, in one transaction or several, whatever else
// counts. It doesn't count accepted requests. Other facts are ignored.
func TestTalliesCountOnce(t *testing.T) {
	consumer, pool := newConsumer(t)
	counted := func(fact contract.RequestsCounted, offset int64) sharedbus.Record {
		return outcome(t, contract.TypeRequestsCounted, fact, offset)
	}
	for _, records := range [][]sharedbus.Record{
		{counted(tally("one", 1, 5), 0), counted(tally("one", 1, 5), 1), counted(tally("two", 1, 7), 2), outcome(t, "weir.outcomes.v1.sung", "la", 3)},
		{counted(tally("one", 1, 5), 4), counted(tally("one", 2, 3), 5), counted(tally("two", 1, 7), 6)},
	} {
		testenv.Must(t, consume(t, consumer, pool, records...))
	}
	for _, table := range []string{"usage_hours", "usage_days"} {
		var rejected, accepted, inBody int64
		err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT sum(requests) FILTER (WHERE outcome = 'rejected'), sum(requests + entries + bytes) FILTER (WHERE outcome = 'accepted'),
				sum(key_in_body) FROM `+table).Scan(&rejected, &accepted, &inBody)
		})
		if err != nil || rejected != 15 || accepted != 0 || inBody != 3 {
			t.Errorf("%s: %d rejected, %d accepted, %d with the key in the body, %v", table, rejected, accepted, inBody, err)
		}
	}
}

// An impossible outcome is a permanent error of its record, so that it
// is parked and blocks none.
func TestOutcomesThatCannotBeTrue(t *testing.T) {
	consumer, pool := newConsumer(t)
	negative := tally("one", 1, -5)
	refused := contract.QuotaRefused{Organization: "acme", RequestID: "req", At: time.Now(), Bytes: -1, Requests: 1}
	garbage := outcome(t, contract.TypeQuotaRefused, "", 2)
	garbage.Value = []byte("{")
	for _, bad := range []sharedbus.Record{outcome(t, contract.TypeRequestsCounted, negative, 0), outcome(t, contract.TypeQuotaRefused, refused, 1), garbage} {
		var permanent *sharedbus.PermanentError
		if err := consume(t, consumer, pool, outcome(t, contract.TypeRequestsCounted, tally("one", 1, 1), 9), bad); !errors.As(err, &permanent) {
			t.Errorf("offset %d: %v", bad.Offset, err)
		}
	}
}

// A plan starts beside events of other types, including types of a newer version.
func TestUnknownTypesOfTenantsPass(t *testing.T) {
	consumer, pool := newConsumer(t)
	records := []sharedbus.Record{
		record(map[string]string{contract.HeaderType: "weir.tenants.v1.sung"}, 0, 1),
		record(map[string]string{contract.HeaderType: contract.TypeProjectCreated}, 0, 2),
		record(map[string]string{contract.HeaderType: contract.TypeOrganizationCreated, contract.HeaderID: "e"}, 0, 3),
	}
	records[0].Value = []byte("no JSON")
	records[2].Value = []byte(`{"organization":"acme","name":"Acme","tier":"indie","created_at":"2026-11-01T00:00:00Z"}`)
	var organizations int
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if err := consumer.Tenants(t.Context(), tx, records); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM organizations`).Scan(&organizations)
	})
	if err != nil || organizations != 1 {
		t.Errorf("%d plans, %v", organizations, err)
	}
}

// createdOrganizations are records of weir.tenants.v1.
func createdOrganizations(organizations ...string) (records []sharedbus.Record) {
	for i, organization := range organizations {
		r := record(map[string]string{contract.HeaderType: contract.TypeOrganizationCreated, contract.HeaderID: organization}, 0, int64(i))
		r.Value = fmt.Appendf(nil, `{"organization":%q,"name":"Acme","tier":"indie","created_at":%q}`, organization, time.Now().Format(time.RFC3339))
		records = append(records, r)
	}
	return records
}

// Plans that wait for an organization don't lock the outbox, least of
// all for anyone who holds the organization.
func TestPlansWaitForAnOrganizationWithoutTheOutbox(t *testing.T) {
	consumer, pool := newConsumer(t)
	recordTiers(t, pool, ledger.Tiers{ledger.Indie: {Quota: 1, RequestsPerMinute: 1, RetentionDays: 1}}) // used up when the plans start
	inTx := func(do func(pgx.Tx) error) error {
		return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(pg.AsSystem(t.Context(), tx), do(tx)) })
	}
	plans := func(tx pgx.Tx) error {
		return consumer.Tenants(t.Context(), tx, createdOrganizations("first", "second"))
	}
	charge := func(tx pgx.Tx) error {
		return consumer.Logs(t.Context(), tx, []sharedbus.Record{accepted("first", 0, 0), accepted("second", 0, 1)})
	}
	testenv.Must(t, inTx(charge))
	waited := make(chan error, 1)
	err := inTx(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM organizations WHERE organization = 'second' FOR NO KEY UPDATE`); err != nil {
			return err
		}
		go func() { waited <- inTx(plans) }()
		testenv.Eventually(t, func() error { return blocked(t, pool) })
		return outbox.Save(t.Context(), tx, []outbox.Fact{{Organization: "second", ID: "1", Type: "charged", At: time.Now(), Body: []byte("{}")}})
	})
	if err := errors.Join(err, <-waited); err != nil {
		t.Error(err)
	}
}

// blocked returns nil as soon as a transaction waits for a row.
func blocked(t *testing.T, pool *pgxpool.Pool) error {
	var waiting int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
	if err == nil && waiting == 0 {
		err = errors.New("nobody waits")
	}
	return err
}

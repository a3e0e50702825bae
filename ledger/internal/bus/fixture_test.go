package bus_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// newConsumer returns a consumer with a fresh database and no broker.
func newConsumer(t testing.TB) (*bus.Consumer, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	recordTiers(t, pool, ledger.DefaultTiers())
	return &bus.Consumer{Services: services.New(services.Config{Reads: pool, Writes: pool, Clock: time.Now}), Clock: time.Now,
		Conflicts: bus.NewConflicts(prometheus.NewRegistry())}, pool
}

// recordTiers records what tiers allow.
func recordTiers(t testing.TB, pool *pgxpool.Pool, tiers ledger.Tiers) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		return postgres.RecordTerms(t.Context(), tx, ledger.Rules{Tiers: tiers, Thresholds: ledger.DefaultThresholds()}, ledger.DefaultRetention())
	})
	if err != nil {
		t.Fatal(err)
	}
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

package bus_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// open returns a fresh database with all tables of the consumer.
func open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
}

// logs is a LogsAccepted that holds the lines.
// It counts those with an error payload.
func logs(lines ...string) contract.LogsAccepted {
	text := strings.Join(lines, "\n") + "\n"
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: "acme", Project: "shop", Environment: "prod", Key: "key",
		Source: "weir/ingest", Time: time.Now().UTC(), Entries: len(lines), Bytes: int64(len(text) - len(lines)),
		Errors: strings.Count(text, `"error":{`), Lines: []byte(text),
	}
}

func record(l contract.LogsAccepted, offset int64) sharedbus.Record {
	r := sharedbus.Record{Topic: contract.TopicLogs, Offset: offset, Key: []byte(l.RecordKey(1)), Value: l.Lines, Time: l.Time}
	for name, value := range l.Headers() {
		r.Headers = append(r.Headers, sharedbus.Header{Key: name, Value: []byte(value)})
	}
	return r
}

// consume applies records in one transaction, with room for every new group.
func consume(ctx context.Context, pool *pgxpool.Pool, records ...sharedbus.Record) error {
	return consumeWithin(ctx, pool, math.MaxInt, records...)
}

// consumeWithin is consume with a budget of new groups.
func consumeWithin(ctx context.Context, pool *pgxpool.Pool, newGroups int, records ...sharedbus.Record) error {
	consumer := bus.Consumer{Errors: groups.New(groups.Config{NewGroups: grouping.Budgets{Project: newGroups, Organization: math.MaxInt}, Metrics: prometheus.NewRegistry()}).Errors}
	return pg.InTx(ctx, pool, func(tx pgx.Tx) error { return consumer.Consume(ctx, tx, records) })
}

func groupsOf(t testing.TB, pool *pgxpool.Pool, organization string) (found []postgres.Group) {
	t.Helper()
	err := pg.ReadAs(t.Context(), pool, pg.Organization(organization), func(tx pgx.Tx) error {
		page, err := postgres.Groups(t.Context(), tx, pg.Organization(organization), postgres.GroupQuery{Limit: 1000})
		found = page.Groups
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

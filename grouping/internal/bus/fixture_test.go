package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
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

// world is grouping by a clock that the test moves.
type world struct {
	*groups.Service
	members *identity.Directory
	t       *testing.T
	pool    *pgxpool.Pool
	now     time.Time
	offset  int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pool: open(t), members: identity.NewDirectory(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	w.Service = groups.New(groups.Config{
		Report:    bus.Report,
		NewGroups: grouping.Budgets{Project: 1000, Organization: 1000}, Projects: w.members, Pool: w.pool, Reads: w.pool, Concurrency: 16,
		Announce: bus.Announce, Send: bus.SaveMessages, Read: bus.ReadEntry, MaxAlerts: 50, Clock: func() time.Time { return w.now }, Metrics: prometheus.NewRegistry(),
	})
	w.join("mem_1", "Me")
	w.join("mem_2", "You")
	return w
}

// join adds a member to acme.
func (w *world) join(id, name string) {
	w.t.Helper()
	added := fmt.Sprintf(`{"organization":"acme","member":%q,"name":%q,"role":"developer"}`, id, name)
	if err := w.members.Apply(contract.TypeMemberAdded, []byte(added)); err != nil {
		w.t.Fatal(err)
	}
}

var member = identity.Principal{Organization: "acme", ID: "mem_1"}

func (w *world) request() groups.Request {
	return groups.Request{Who: member, By: postgres.Author{ID: member.ID, Address: "192.0.2.7", Client: "curl/8.5.0"}}
}

// accept is a record of entries that was accepted at a time.
func (w *world) accept(at time.Time, lines ...string) sharedbus.Record {
	l := logs(lines...)
	l.Time = at
	w.offset++
	return record(l, w.offset)
}

// apply consumes records.
func (w *world) apply(ctx context.Context, records ...sharedbus.Record) error {
	return pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error { return bus.Consumer{Errors: w.Errors}.Consume(ctx, tx, records) })
}

// consume consumes records without a fault.
func (w *world) consume(records ...sharedbus.Record) {
	w.t.Helper()
	if err := w.apply(w.t.Context(), records...); err != nil {
		w.t.Fatal(err)
	}
}

// failures are entries of kinds, accepted now, each in a record of its own.
func (w *world) failures(kinds ...int) (records []sharedbus.Record) {
	for _, kind := range kinds {
		records = append(records, w.accept(w.now, groupingtest.Failure(kind)))
	}
	return records
}

// removed tells that a member was removed.
func (w *world) removed(id string) {
	w.t.Helper()
	gone, _ := json.Marshal(contract.MemberRemoved{Organization: "acme", Member: id, RemovedAt: w.now})
	removal := sharedbus.Record{Topic: contract.TopicTenants, Value: gone, Headers: []sharedbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeMemberRemoved)}}}
	err := pg.InTxAsSystem(w.t.Context(), w.pool, func(tx pgx.Tx) error { return bus.ConsumeTenants(w.t.Context(), tx, []sharedbus.Record{removal}) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// consume applies records in one transaction, with room for every new group.
func consume(ctx context.Context, pool *pgxpool.Pool, records ...sharedbus.Record) error {
	return consumeWithin(ctx, pool, math.MaxInt, records...)
}

// consumeWithin is consume with a budget of new groups.
func consumeWithin(ctx context.Context, pool *pgxpool.Pool, newGroups int, records ...sharedbus.Record) error {
	consumer := bus.Consumer{Errors: groups.New(groups.Config{NewGroups: grouping.Budgets{Project: newGroups, Organization: math.MaxInt}, Metrics: prometheus.NewRegistry()}).Errors}
	return pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error { return consumer.Consume(ctx, tx, records) })
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

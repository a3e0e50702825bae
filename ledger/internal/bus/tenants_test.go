package bus_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

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
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
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
	if err := inTx(charge); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	err := inTx(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM organizations WHERE organization = 'second' FOR NO KEY UPDATE`); err != nil {
			return err
		}
		go func() { waited <- inTx(plans) }()
		testenv.Eventually(t, 30*time.Second, func() error { return blocked(t, pool) })
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

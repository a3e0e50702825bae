package bus_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// A plan starts beside events of other types, also of those that a newer version publishes, which are no failure.
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

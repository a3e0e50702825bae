package bus

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
)

// Uses and exposures are consumed beside types
// of a newer version, which are no failure.
func TestUnknownTypesOfUsagePass(t *testing.T) {
	used, exposed := 0, 0
	consumer := UsageConsumer{
		Exposed: func(context.Context, pgx.Tx, string, string, tenants.Exposure) error { exposed++; return nil },
		Used:    func(_ context.Context, _ pgx.Tx, all []tenants.UsedAPIKey) error { used += len(all); return nil },
	}
	const owner = `{"organization":"org_1","api_key":"key_1","how":"plain_http"}`
	var records []weirbus.Record
	for _, r := range [][2]string{
		{"weir.ingest.v1.sung", `no JSON`}, {contract.TypeKeyUsed, owner}, {contract.TypeKeyExposed, owner}, {"", ""},
	} {
		records = append(records, weirbus.Record{Value: []byte(r[1]), Headers: []weirbus.Header{{Key: contract.HeaderType, Value: []byte(r[0])}}})
	}
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Consume(t.Context(), tx, records) })
	if err != nil || used != 1 || exposed != 1 {
		t.Errorf("%d uses, %d exposures, %v", used, exposed, err)
	}
}

package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg/pgtest"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// What is withdrawn and forgotten while it is compared is no loss; what
// the topics still have afterwards is.
func TestWhatIsWithdrawnMeanwhileIsNotLost(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	publication := bus.NewPublication(newEvents(pool))
	before := bus.Topics{
		Credentials: map[string]weirbus.Record{"gone": {Value: []byte(`{"version":"`)}, "stays": {Value: []byte(`{"version":"`)}},
		Facts:       map[string]bool{"project.created/1": true, "project.created/2": true},
	}
	later := bus.Topics{Credentials: map[string]weirbus.Record{"stays": {}}, Facts: map[string]bool{"project.created/2": true}}
	var found relay.Difference
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		found, err = publication.Compare(t.Context(), tx, before, func(context.Context) (bus.Topics, error) { return later, nil }, relay.Cursor{}, time.Now())
		return err
	})
	if err != nil || found.Lost != "0 states of credentials, 1 tombstones of credentials, 0 facts, 1 tombstones of facts" {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, key := range []string{"stays", "project.created/2"} {
		if got := found.Publish[i].Message.Metadata[weirbus.KeyMetadata]; got != key {
			t.Errorf("the tombstone of %q, want %q", got, key)
		}
	}
}

package bus_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
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

// A fact is surplus where another kind of event has its position: tables of
// an earlier hour gave it away. What an event of a later version led to stays.
func TestFactsOfPositionsGivenAwayAreSurplus(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	publication := bus.NewPublication(newEvents(pool))
	facts := map[string]bool{
		contract.TypeProjectCreated + "/1": true, contract.TypeProjectRenamed + "/1": true, contract.TypeProjectRenamed + "/2": true,
		contract.TypeAPIKeyRevoked + "/3": true, contract.TypeAPIKeyRevoked + "/4": true, contract.TypeOrganizationCreated + "/5": true,
	}
	var found relay.Difference
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) (err error) {
		_, err = tx.Exec(t.Context(), `INSERT INTO events (organization, stream, version, position, name, data, metadata)
			SELECT 'org', 'project/' || position, 1, position, name, '{}', '{}' FROM unnest($1::text[]) WITH ORDINALITY AS e (name, position)`,
			[]string{tenants.EventName(tenants.ProjectCreated{}), tenants.EventName(tenants.InvitationMade{}), "tenants.v9.key_revoked", "erased"})
		if err != nil {
			return err
		}
		again := func(context.Context) (bus.Topics, error) { return bus.Topics{Facts: facts}, nil }
		found, err = publication.Compare(t.Context(), tx, bus.Topics{Facts: facts}, again, relay.Cursor{}, time.Now())
		return err
	}))
	var surplus []string
	for _, out := range found.Publish {
		surplus = append(surplus, out.Message.Metadata[weirbus.KeyMetadata])
	}
	want := []string{contract.TypeProjectRenamed + "/1", contract.TypeProjectRenamed + "/2", contract.TypeAPIKeyRevoked + "/4"}
	if !slices.Equal(surplus, want) {
		t.Errorf("surplus are %q, want %q", surplus, want)
	}
}

package bus_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// aFact is a record of weir.tenants.v1; without a value a tombstone, whose
// id says why.
func aFact(t *testing.T, kind, key string, value any, id string) weirbus.Record {
	t.Helper()
	record := weirbus.Record{Key: []byte(key), Headers: []weirbus.Header{
		{Key: contract.HeaderType, Value: []byte(kind)}, {Key: contract.HeaderID, Value: []byte(id)},
	}}
	if value != nil {
		var err error
		record.Value, err = json.Marshal(value)
		testenv.Must(t, err)
	}
	return record
}

// The topics name what is neither withdrawn nor deleted: also by facts that
// the tables of an earlier hour did not lead to. A key is known to be
// revoked if any record says so, whatever the order.
func TestNames(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	created := func(key, id, name string) weirbus.Record {
		return aFact(t, contract.TypeOrganizationCreated, key, contract.OrganizationCreated{Organization: id, Name: name, Tier: "scale", CreatedAt: begun}, key)
	}
	names := bus.NewNames()
	for _, record := range []weirbus.Record{
		created("weir.tenants.v1.organization_created/1", "org_1", "First"),
		aFact(t, contract.TypeOrganizationRenamed, "weir.tenants.v1.organization_renamed/2", contract.OrganizationRenamed{Organization: "org_1", Name: "Renamed"}, "x"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/3", contract.ProjectCreated{Organization: "org_1", Project: "prj_1", Name: "Shop", CreatedAt: begun}, "x"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/3", nil, "weir.tenants.v1.project_created/3/unknown"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/4", contract.ProjectCreated{Organization: "org_1", Project: "prj_2", Name: "Gone", CreatedAt: begun}, "x"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/4", nil, "weir.tenants.v1.project_created/4/withdrawn/7"),
		aFact(t, contract.TypeAPIKeyIssued, "weir.tenants.v1.api_key_issued/5", contract.APIKeyIssued{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Name: "laptop"}, "x"),
		aFact(t, contract.TypeAPIKeyRevoked, "weir.tenants.v1.api_key_revoked/6", contract.APIKeyRevoked{Organization: "org_1", Project: "prj_1", APIKey: "key_1"}, "x"),
		created("weir.tenants.v1.organization_created/7", "org_2", ""),
		created("weir.tenants.v1.organization_created/8", "org_3", "Third"),
		aFact(t, contract.TypeDeletionRequested, "weir.tenants.v1.deletion_requested/9", contract.DeletionRequested{Organization: "org_3"}, "x"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/10", contract.ProjectCreated{Organization: "org_1", Project: "prj_3", Name: "Erased", CreatedAt: begun}, "x"),
		aFact(t, contract.TypeDeletionBegun, "weir.tenants.v1.deletion_begun/11", contract.DeletionBegun{Organization: "org_1", Project: "prj_3"}, "x"),
		aFact(t, contract.TypeProjectCreated, "weir.tenants.v1.project_created/10", nil, "weir.tenants.v1.project_created/10/withdrawn/12"),
		aFact(t, contract.TypeOrganizationCreated, "unreadable", "text", "x"),
	} {
		names.ApplyFact(record)
	}
	for key, c := range map[string]contract.Credential{
		"a": {Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive},
		"b": {Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive},
		"c": {Kind: contract.CredentialSession, ID: "ses_1", Organization: "org_1", State: contract.CredentialActive},
	} {
		value, err := json.Marshal(c)
		testenv.Must(t, err)
		names.ApplyCredential(weirbus.Record{Key: []byte(key), Value: value})
	}
	got := map[string]bus.Named{}
	for _, of := range names.All() {
		got[of.ID()] = of
	}
	if len(got) != 7 {
		t.Errorf("named are %+v", got)
	}
	if of := got["org_1"]; of.Name != "Renamed" || of.Tier != "scale" || !of.At.Equal(begun) || of.Deleted {
		t.Errorf("the organization: %+v", of)
	}
	if of := got["prj_1"]; of.Name != "Shop" || of.Stream().Name != "project/prj_1" {
		t.Errorf("the project that tables do not know: %+v", of)
	}
	if of := got["key_1"]; of.Name != "laptop" || of.Hash != "a" || !of.Revoked {
		t.Errorf("the revoked key: %+v", of)
	}
	if of := got["key_2"]; of.Hash != "b" || of.Revoked || of.Stream().Name != "api-key/key_2" {
		t.Errorf("the key without a fact: %+v", of)
	}
	if of := got["prj_3"]; !of.Deleted || of.Name != "" {
		t.Errorf("the project that is being erased: %+v", of)
	}
	if !got["org_2"].Deleted || !got["org_3"].Deleted {
		t.Errorf("deleted are %+v and %+v", got["org_2"], got["org_3"])
	}
	continues(t, names, created)
}

// continues expects that positions go on behind the facts, and that only
// a fact that began one thing alone is withdrawn.
func continues(t *testing.T, names *bus.Names, created func(key, id, name string) weirbus.Record) {
	t.Helper()
	names.ApplyFact(created("weir.tenants.v1.organization_created/8", "org_4", "Took its place"))
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	var next int64
	var withdrawn []string
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if err := names.Continue(t.Context(), tx); err != nil {
			return err
		}
		for _, of := range names.All() {
			if err := bus.WithdrawBeginning(t.Context(), tx, of); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(t.Context(), `SELECT nextval('events_position_seq')`).Scan(&next); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT array_agg(key || ' of ' || organization ORDER BY key) FROM withdrawals`).Scan(&withdrawn)
	}))
	if next != 12 {
		t.Errorf("the next position is %d, want 12", next)
	}
	want := []string{
		"weir.tenants.v1.api_key_issued/5 of org_1", "weir.tenants.v1.organization_created/1 of org_1", "weir.tenants.v1.organization_created/7 of org_2",
		"weir.tenants.v1.organization_created/8 of org_4", "weir.tenants.v1.project_created/3 of org_1",
	}
	if !slices.Equal(withdrawn, want) {
		t.Errorf("withdrawn are %q, want %q", withdrawn, want)
	}
}

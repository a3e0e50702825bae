package unitofwork_test

import (
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func create(name string) func(tenants.Project) ([]tenants.Event, error) {
	return func(p tenants.Project) ([]tenants.Event, error) {
		return p.Create(tenants.CreateProject{ID: "prj_new", Organization: "org_a", Name: name, At: tenantstest.Now()})
	}
}

// All of a unit is committed, or nothing; and it reads its own writes.
func TestUnitIsKeptOrDropped(t *testing.T) {
	work := tenantstest.NewWriter(tenantstest.Open(t))
	stream := unitofwork.Stream("org_a", "project", "prj_new")
	for _, keep := range []bool{false, true} {
		u, err := work.Begin(t.Context(), "org_a", unitofwork.BySystem("test"))
		testenv.Must(t, err)
		if before, err := unitofwork.Load[tenants.Project](t.Context(), u, stream); err != nil || before.State.ID != "" {
			t.Errorf("what was dropped is there: %+v, %v", before.State, err)
		}
		if _, err := unitofwork.Change(t.Context(), u, stream, create("Shop")); err != nil {
			t.Fatal(err)
		}
		if seen, err := unitofwork.Load[tenants.Project](t.Context(), u, stream); err != nil || seen.State.Name != "Shop" {
			t.Errorf("the unit sees %+v, %v", seen.State, err)
		}
		if keep {
			err = u.Commit(t.Context())
		}
		u.Rollback(t.Context())
		testenv.Must(t, err)
	}
	history, err := work.Events.Read(t.Context(), stream)
	if err != nil || len(history) != 1 || history[0].Metadata["actor"] != "test" {
		t.Errorf("kept: %+v, %v", history, err)
	}
}

// A member acts in their present role; a token, and a caller at
// the server, by their scopes.
func TestRequire(t *testing.T) {
	work := tenantstest.NewWriter(tenantstest.Open(t))
	member := func(id string) unitofwork.Request {
		return unitofwork.Request{}.By(tenants.Member{ID: id, Organization: "org_a", Role: tenants.Owner})
	}
	for name, c := range map[string]struct {
		request    unitofwork.Request
		permission tenants.Permission
		want       error
	}{
		"what an admin may":      {member("mem_a"), tenants.ProjectsWrite, nil},
		"what an owner may":      {member("mem_a"), tenants.OwnersManage, tenants.ErrForbidden},
		"who was removed":        {member("mem_gone_a"), tenants.ProjectsRead, unitofwork.ErrRemoved},
		"a token":                {unitofwork.Request{Caller: tenants.Caller{ID: "tok_1", Organization: "org_a"}}, tenants.OwnersManage, nil},
		"somebody at the server": {unitofwork.AtTheServer("test"), tenants.OwnersManage, nil},
	} {
		u, err := work.Begin(t.Context(), "org_a", c.request)
		testenv.Must(t, err)
		if err := u.Require(t.Context(), c.permission); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		u.Rollback(t.Context())
	}
}

// An event projected to two tables is a mistake that panics.
func TestJoinRefusesTwoProjections(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nobody noticed")
		}
	}()
	one := unitofwork.Unprojected[tenants.OwnerCodeUsed]()
	unitofwork.Join(one, one)
}

// An event is stored with who decided it and from
// where, in a stored form without unknown parts.
func TestMetadata(t *testing.T) {
	address := netip.MustParseAddr("2001:db8::7")
	member := tenants.Member{ID: "mem_1", Organization: "org_1", Role: tenants.Admin}
	for name, test := range map[string]struct {
		got, want map[string]string
	}{
		"a member": {
			unitofwork.Request{Address: address, Client: "Mozilla/5.0", ID: "req_1"}.By(member).Metadata(),
			map[string]string{"actor": "mem_1", "actor_kind": "member", "role": "admin", "address": "2001:db8::7",
				"client": "Mozilla/5.0", "request": "req_1"},
		},
		"a service token": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token"},
		},
		"a credential in the wrong place": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}, Client: "weir_" + strings.Repeat("a", 48) + "/1.0"}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token", "client": "weir_[redacted]/1.0"},
		},
		"a client that says much, and more than text": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}, Client: "a\x00" + strings.Repeat("x", 201)}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token", "client": "a" + strings.Repeat("x", 199)},
		},
		"the configuration": {unitofwork.ByConfiguration().Metadata(), map[string]string{"actor": "configuration", "actor_kind": "configuration"}},
		"the system":        {unitofwork.BySystem("expiry").Metadata(), map[string]string{"actor": "expiry", "actor_kind": "system"}},
	} {
		if !maps.Equal(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
		if back := tenants.OriginOf(test.got).Metadata(); !maps.Equal(back, test.want) {
			t.Errorf("%s: read back as %v", name, back)
		}
	}
}

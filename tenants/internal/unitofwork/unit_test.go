package unitofwork_test

import (
	"errors"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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

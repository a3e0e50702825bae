package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

// A project is created once, for an organization;
// a repeated request changes nothing.
func TestProjectDecisions(t *testing.T) {
	created := tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon}
	create := func(organization, name string) func(tenants.Project) ([]tenants.Event, error) {
		return func(p tenants.Project) ([]tenants.Event, error) {
			return p.Create(tenants.CreateProject{ID: "prj_1", Organization: organization, Name: name, At: noon})
		}
	}
	renamed := tenants.ProjectRenamed{Project: "prj_1", Name: "Store", At: later}
	rename := func(name string) func(tenants.Project) ([]tenants.Event, error) {
		return func(p tenants.Project) ([]tenants.Event, error) {
			return p.Rename(tenants.Rename{Name: name, At: later})
		}
	}
	decide(t, map[string]decision[tenants.Project]{
		"create":                       {when: create("org_1", " Shop "), then: []tenants.Event{created}},
		"create again":                 {given: []tenants.Event{created}, when: create("org_1", "Shop")},
		"create another name":          {given: []tenants.Event{created}, when: create("org_1", "Store"), fails: tenants.ErrReused},
		"rename":                       {given: []tenants.Event{created}, when: rename(" Store "), then: []tenants.Event{renamed}},
		"rename to the same":           {given: []tenants.Event{created, renamed}, when: rename("Store")},
		"rename to nothing":            {given: []tenants.Event{created}, when: rename(""), faults: []string{"name"}},
		"rename what is not":           {when: rename("Store"), fails: tenants.ErrNotFound},
		"create again, after a rename": {given: []tenants.Event{created, renamed}, when: create("org_1", "Shop")},
		"every fault at once":          {when: create("", "\x07"), faults: []string{"organization", "name"}},
	})
}

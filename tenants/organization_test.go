package tenants_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
)

// An organization is created once, with a trimmed name
// and a known tier; a repeated request changes nothing.
func TestOrganizationDecisions(t *testing.T) {
	created := tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Scale, At: noon}
	create := func(name string, tier tenants.Tier) func(tenants.Organization) ([]tenants.Event, error) {
		return func(o tenants.Organization) ([]tenants.Event, error) {
			return o.Create(tenants.CreateOrganization{ID: "org_1", Name: name, Tier: tier, At: noon})
		}
	}
	joined := tenants.OrganizationCreated{Organization: "org_1", Name: "می\u200cخواهم", Tier: tenants.Scale, At: noon}
	renamed := tenants.OrganizationRenamed{Organization: "org_1", Name: "Acme & Co", At: later}
	rename := func(name string) func(tenants.Organization) ([]tenants.Event, error) {
		return func(o tenants.Organization) ([]tenants.Event, error) {
			return o.Rename(tenants.Rename{Name: name, At: later})
		}
	}
	decide(t, map[string]decision[tenants.Organization]{
		"create":                       {when: create("Acme", tenants.Scale), then: []tenants.Event{created}},
		"the name is trimmed":          {when: create(" \tAcme\n", tenants.Scale), then: []tenants.Event{created}},
		"create again":                 {given: []tenants.Event{created}, when: create("Acme", tenants.Scale)},
		"create another name":          {given: []tenants.Event{created}, when: create("Acne", tenants.Scale), fails: tenants.ErrReused},
		"create another tier":          {given: []tenants.Event{created}, when: create("Acme", tenants.Indie), fails: tenants.ErrReused},
		"no name":                      {when: create(" ", tenants.Scale), faults: []string{"name"}},
		"a name of 201":                {when: create(strings.Repeat("ä", 201), tenants.Scale), faults: []string{"name"}},
		"a control character":          {when: create("Ac\x00me", tenants.Scale), faults: []string{"name"}},
		"a byte that is no UTF-8":      {when: create("Ac\xffme", tenants.Scale), faults: []string{"name"}},
		"a line separator":             {when: create("Ac\u2028me", tenants.Scale), faults: []string{"name"}},
		"a turn of direction":          {when: create("Ac\u202eme", tenants.Scale), faults: []string{"name"}},
		"letters that are joined":      {when: create("می\u200cخواهم", tenants.Scale), then: []tenants.Event{joined}},
		"no such tier":                 {when: create("Acme", "gold"), faults: []string{"tier"}},
		"every fault at once":          {when: create("", ""), faults: []string{"name", "tier"}},
		"rename":                       {given: []tenants.Event{created}, when: rename(" Acme & Co "), then: []tenants.Event{renamed}},
		"rename to the same":           {given: []tenants.Event{created}, when: rename("Acme ")},
		"rename to nothing":            {given: []tenants.Event{created}, when: rename(" "), faults: []string{"name"}},
		"rename what is not":           {when: rename("Acme"), fails: tenants.ErrNotFound},
		"create again, after a rename": {given: []tenants.Event{created, renamed}, when: create("Acme", tenants.Scale)},
	})
}

// A name may have 200 characters of any script, however many bytes those are.
func TestLongestName(t *testing.T) {
	events, err := tenants.Organization{}.Create(tenants.CreateOrganization{
		ID: "org_1", Name: strings.Repeat("界", 200), Tier: tenants.Indie, At: noon,
	})
	if err != nil || len(events) != 1 {
		t.Errorf("got %v, %v", events, err)
	}
}

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

package tenants

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/tier"
)

// A Tier is what an organization has subscribed
// to. The ledger defines what it grants.
type Tier string

// The tiers.
const (
	Indie        Tier = tier.Indie
	Bootstrapper Tier = tier.Bootstrapper
	Compliance   Tier = tier.Compliance
	Scale        Tier = tier.Scale
)

// OrganizationCreated starts an organization.
type OrganizationCreated struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	Tier         Tier      `json:"tier"`
	At           time.Time `json:"at"`
	ReadoptedAt  time.Time `json:"readopted_at,omitzero"` // it was created At, and lost by a restore since
}

func (e OrganizationCreated) meta() eventMeta {
	action, at := beginning("organization", "created", e.At, e.ReadoptedAt)
	return eventMeta{"tenants.v1.organization_created", PublishedFact, action, at, &Organization{}, kept}
}

func tiers() []Tier {
	return []Tier{Indie, Bootstrapper, Compliance, Scale}
}

// An Organization owns everything else.
type Organization struct {
	ID        string // empty until it is created
	Name      string
	Tier      Tier
	CreatedAt time.Time

	created OrganizationCreated
}

// CreateOrganization is the command to create an organization.
type CreateOrganization struct {
	ID   string
	Name string
	Tier Tier
	At   time.Time

	ReadoptedAt time.Time // zero: it is new; else a restore had lost what was created At
}

// Check returns Invalid with every fault of the command, or nil.
func (c CreateOrganization) Check() error {
	faults := checkName(c.Name)
	if !slices.Contains(tiers(), c.Tier) {
		faults = append(faults, Fault{"tier", fmt.Sprintf("tier is %q.", c.Tier), oneOf(tiers())})
	}
	return faults.orNil()
}

// Create decides on a new organization. It is idempotent;
// with another name or tier it fails with ErrReused.
func (o Organization) Create(cmd CreateOrganization) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	name := CleanName(cmd.Name)
	switch {
	case o.ID == "":
		return []Event{OrganizationCreated{Organization: cmd.ID, Name: name, Tier: cmd.Tier, At: cmd.At, ReadoptedAt: cmd.ReadoptedAt}}, nil
	case o.created.Name != name || o.created.Tier != cmd.Tier:
		return nil, ErrReused
	}
	return nil, nil
}

// Rename is the command to rename an organization or a project.
type Rename struct {
	Name string
	At   time.Time
}

// OrganizationRenamed gives an organization another name.
type OrganizationRenamed struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	At           time.Time `json:"at"`
}

func (e OrganizationRenamed) meta() eventMeta {
	return eventMeta{"tenants.v1.organization_renamed", PublishedFact, "organization.renamed", e.At, &Organization{}, byNext}
}

// Check returns Invalid with every fault of the command, or nil.
func (c Rename) Check() error {
	return checkName(c.Name).orNil()
}

// Rename decides on another name. The same name has no event.
func (o Organization) Rename(cmd Rename) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	name := CleanName(cmd.Name)
	switch {
	case o.ID == "":
		return nil, ErrNotFound
	case o.Name == name:
		return nil, nil
	}
	return []Event{OrganizationRenamed{Organization: o.ID, Name: name, At: cmd.At}}, nil
}

// Apply applies an event.
func (o *Organization) Apply(event Event) {
	switch e := event.(type) {
	case OrganizationCreated:
		*o = Organization{ID: e.Organization, Name: e.Name, Tier: e.Tier, CreatedAt: e.At, created: e}
	case OrganizationRenamed:
		o.Name = e.Name
	default:
		panic(fmt.Sprintf("BUG: an organization does not know %T", event))
	}
}

func (o *Organization) audited() (Target, Fields) {
	return Target{"organization", o.ID, o.Name}, Fields{"name": o.Name, "tier": string(o.Tier)}
}

// A Project is one application or service of
// an organization. Names need not be unique.
type Project struct {
	ID           string // empty until created
	Organization string
	Name         string
	CreatedAt    time.Time

	created ProjectCreated
}

// CreateProject is the command to create
// a project in an existing organization.
type CreateProject struct {
	ID           string
	Organization string
	Name         string
	At           time.Time
	ReadoptedAt  time.Time // as for CreateOrganization
}

// ProjectCreated starts a project.
type ProjectCreated struct {
	Project      string    `json:"project"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	At           time.Time `json:"at"`
	ReadoptedAt  time.Time `json:"readopted_at,omitzero"` // as for OrganizationCreated
}

func (e ProjectCreated) meta() eventMeta {
	action, at := beginning("project", "created", e.At, e.ReadoptedAt)
	return eventMeta{"tenants.v1.project_created", PublishedFact, action, at, &Project{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c CreateProject) Check() error {
	return append(checkGiven("organization", c.Organization), checkName(c.Name)...).orNil()
}

// Create decides on a new project. It is idempotent;
// with another name it fails with ErrReused.
func (p Project) Create(cmd CreateProject) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	name := CleanName(cmd.Name)
	switch {
	case p.ID == "":
		return []Event{ProjectCreated{Project: cmd.ID, Organization: cmd.Organization, Name: name, At: cmd.At, ReadoptedAt: cmd.ReadoptedAt}}, nil
	case p.created.Name != name:
		return nil, ErrReused
	}
	return nil, nil
}

// ProjectRenamed gives a project another name.
type ProjectRenamed struct {
	Project string    `json:"project"`
	Name    string    `json:"name"`
	At      time.Time `json:"at"`
}

func (e ProjectRenamed) meta() eventMeta {
	return eventMeta{"tenants.v1.project_renamed", PublishedFact, "project.renamed", e.At, &Project{}, byNext}
}

// Rename decides on another name. The same name has no event.
func (p Project) Rename(cmd Rename) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	name := CleanName(cmd.Name)
	switch {
	case p.ID == "":
		return nil, ErrNotFound
	case p.Name == name:
		return nil, nil
	}
	return []Event{ProjectRenamed{Project: p.ID, Name: name, At: cmd.At}}, nil
}

// Apply applies an event.
func (p *Project) Apply(event Event) {
	switch e := event.(type) {
	case ProjectCreated:
		*p = Project{ID: e.Project, Organization: e.Organization, Name: e.Name, CreatedAt: e.At, created: e}
	case ProjectRenamed:
		p.Name = e.Name
	default:
		panic(fmt.Sprintf("BUG: a project does not know %T", event))
	}
}

func (p *Project) audited() (Target, Fields) {
	return Target{"project", p.ID, p.Name}, Fields{"name": p.Name}
}

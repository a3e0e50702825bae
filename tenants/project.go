package tenants

import (
	"fmt"
	"time"
)

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
}

// ProjectCreated starts a project.
type ProjectCreated struct {
	Project      string    `json:"project"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	At           time.Time `json:"at"`
}

// EventName implements Event.
func (ProjectCreated) EventName() string { return "tenants.v1.project_created" }

func (e ProjectCreated) audit() auditForm { return auditForm{"project.created", e.At, &Project{}} }

// Publication implements Event.
func (ProjectCreated) Publication() Publication { return PublishedFact }

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
		return []Event{ProjectCreated{Project: cmd.ID, Organization: cmd.Organization, Name: name, At: cmd.At}}, nil
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

// EventName implements Event.
func (ProjectRenamed) EventName() string { return "tenants.v1.project_renamed" }

func (e ProjectRenamed) audit() auditForm { return auditForm{"project.renamed", e.At, &Project{}} }

// Publication implements Event.
func (ProjectRenamed) Publication() Publication { return PublishedFact }

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

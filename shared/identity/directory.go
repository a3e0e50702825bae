package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/weirlog/weir/shared/contract"
)

// A Directory knows which organization a project belongs to, and which projects an organization has, as weir.tenants.v1
// has it. Safe for concurrent use.
type Directory struct {
	mu             sync.RWMutex
	byProject      map[string]contract.ProjectCreated // bounded by the projects that there are
	byOrganization map[string][]string                // ids of projects, in the order in which they became known; bounded by them
}

// NewDirectory makes an empty directory; feed it with Apply.
func NewDirectory() *Directory {
	return &Directory{byProject: map[string]contract.ProjectCreated{}, byOrganization: map[string][]string{}}
}

// Apply takes one record of weir.tenants.v1; facts about anything but projects pass by. Records may be read again.
func (d *Directory) Apply(eventType string, value []byte) error {
	switch eventType {
	case contract.TypeProjectCreated:
		return apply(value, eventType, d.created)
	case contract.TypeProjectRenamed:
		return apply(value, eventType, d.renamed)
	}
	return nil
}

func apply[F any](value []byte, eventType string, take func(fact F)) error {
	var fact F
	if err := json.Unmarshal(value, &fact); err != nil {
		return fmt.Errorf("cannot read a fact of type %q: %w", eventType, err)
	}
	take(fact)
	return nil
}

func (d *Directory) created(fact contract.ProjectCreated) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.byProject[fact.Project]; !known {
		d.byOrganization[fact.Organization] = append(d.byOrganization[fact.Organization], fact.Project)
	}
	d.byProject[fact.Project] = fact
}

func (d *Directory) renamed(fact contract.ProjectRenamed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if project, known := d.byProject[fact.Project]; known {
		project.Name = fact.Name
		d.byProject[fact.Project] = project
	}
}

// Organization returns the organization that project belongs to.
func (d *Directory) Organization(project string) (organization string, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	fact, known := d.byProject[project]
	return fact.Organization, known
}

// Name returns the name of a project; its id where the name is not known.
func (d *Directory) Name(project string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return cmp.Or(d.byProject[project].Name, project)
}

// Projects returns the projects of an organization by name.
func (d *Directory) Projects(organization string) []contract.ProjectCreated {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var projects []contract.ProjectCreated
	for _, id := range d.byOrganization[organization] {
		projects = append(projects, d.byProject[id])
	}
	slices.SortFunc(projects, func(a, b contract.ProjectCreated) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Project, b.Project))
	})
	return projects
}

package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weirlog/weir/shared/contract"
)

// A Directory holds the organization of each project, and the projects
// of each organization, from weir.tenants.v1. Safe for concurrent use.
type Directory struct {
	mu             sync.RWMutex
	byProject      map[string]contract.ProjectCreated // bounded by the existing projects
	byOrganization map[string][]string                // ids of projects, in the order of their facts; bounded by the existing ones
	hidden         map[string]map[string]bool         // by organization, ids of projects, and "" for all; bounded by unfinished deletions
}

// NewDirectory returns an empty directory, to be filled by Apply.
func NewDirectory() *Directory {
	return &Directory{byProject: map[string]contract.ProjectCreated{}, byOrganization: map[string][]string{}, hidden: map[string]map[string]bool{}}
}

// Apply takes one record of weir.tenants.v1; it ignores facts that are
// not about projects. Records may be read again.
func (d *Directory) Apply(eventType string, value []byte) error {
	switch eventType {
	case contract.TypeProjectCreated:
		return apply(value, eventType, d.created)
	case contract.TypeProjectRenamed:
		return apply(value, eventType, d.renamed)
	case contract.TypeDeletionRequested:
		return apply(value, eventType, d.deletionRequested)
	case contract.TypeDeletionCancelled:
		return apply(value, eventType, d.deletionCancelled)
	case contract.TypeDeletionBegun:
		return apply(value, eventType, d.deletionBegun)
	case contract.TypeDeletionFinished:
		return apply(value, eventType, d.deletionFinished)
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

func (d *Directory) deletionRequested(fact contract.DeletionRequested) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hide(fact.Organization, fact.Project)
}

func (d *Directory) deletionCancelled(fact contract.DeletionCancelled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.show(fact.Organization, fact.Project)
}

// deletionBegun drops what was deleted, but keeps it hidden until it is erased.
func (d *Directory) deletionBegun(fact contract.DeletionBegun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := []string{fact.Project}
	if fact.Project == "" {
		gone = d.byOrganization[fact.Organization]
		delete(d.byOrganization, fact.Organization)
	} else {
		d.byOrganization[fact.Organization] = slices.DeleteFunc(d.byOrganization[fact.Organization], func(id string) bool { return id == fact.Project })
	}
	for _, id := range gone {
		delete(d.byProject, id)
	}
	d.hide(fact.Organization, fact.Project)
}

// deletionFinished forgets what is erased everywhere.
func (d *Directory) deletionFinished(fact contract.DeletionFinished) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if fact.Project == "" {
		delete(d.hidden, fact.Organization) // with its projects
		return
	}
	d.show(fact.Organization, fact.Project)
}

// hide hides a project, or with "" an organization. The caller holds the lock.
func (d *Directory) hide(organization, project string) {
	if d.hidden[organization] == nil {
		d.hidden[organization] = map[string]bool{}
	}
	d.hidden[organization][project] = true
}

// show undoes hide.
func (d *Directory) show(organization, project string) {
	if delete(d.hidden[organization], project); len(d.hidden[organization]) == 0 {
		delete(d.hidden, organization)
	}
}

func (d *Directory) isHidden(organization, project string) bool {
	return d.hidden[organization][project] || d.hidden[organization][""]
}

// Hides reports whether a project must not be shown: it is deleted, or
// to be deleted.
func (d *Directory) Hides(organization, project string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hidden[organization][project]
}

// Hidden returns an organization's hidden projects, as the caller's own map.
func (d *Directory) Hidden(organization string) map[string]bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return maps.Clone(d.hidden[organization])
}

// Organization returns a project's organization.
func (d *Directory) Organization(project string) (organization string, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	fact, known := d.byProject[project]
	if d.isHidden(fact.Organization, project) {
		return "", false
	}
	return fact.Organization, known
}

// Owns reports whether a project belongs to the organization.
func (d *Directory) Owns(organization, project string) bool {
	owner, known := d.Organization(project)
	return known && owner == organization
}

// Name returns the name of a project, or its id.
func (d *Directory) Name(project string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	fact := d.byProject[project]
	if d.isHidden(fact.Organization, project) {
		return project
	}
	return cmp.Or(fact.Name, project)
}

// Projects returns the projects of an organization sorted by name.
func (d *Directory) Projects(organization string) []contract.ProjectCreated {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var projects []contract.ProjectCreated
	for _, id := range d.byOrganization[organization] {
		if d.isHidden(organization, id) {
			continue
		}
		projects = append(projects, d.byProject[id])
	}
	slices.SortFunc(projects, func(a, b contract.ProjectCreated) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Project, b.Project))
	})
	return projects
}

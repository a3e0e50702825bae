package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
)

// A Directory holds the projects of each organization, its webhooks, and the names of
// organizations, projects, keys and members, from weir.tenants.v1. Safe for concurrent use.
type Directory struct {
	mu             sync.RWMutex
	byProject      map[string]contract.ProjectCreated // bounded by the existing projects
	byOrganization map[string][]string                // ids of projects, in the order of their facts; bounded by the existing ones
	hidden         map[string]map[string]bool         // by organization, ids of projects, and "" for all; bounded by unfinished deletions
	names          map[string]string                  // by organization; bounded by the existing ones
	keys           map[string][]Key                   // by organization, the oldest first; bounded by maxKeys each
	members        members
	webhooks       webhooks
}

// A Key is an API key as people know it.
type Key struct {
	ID, Name, Project, Environment string
	Revoked                        bool
}

// maxKeys is how many keys of an organization have names here: more than
// it may have at once. Older ones show their ids.
const maxKeys = 2000

// NewDirectory returns an empty directory, to be filled by Apply.
func NewDirectory() *Directory {
	return &Directory{byProject: map[string]contract.ProjectCreated{}, byOrganization: map[string][]string{}, hidden: map[string]map[string]bool{},
		names: map[string]string{}, keys: map[string][]Key{}, members: members{}, webhooks: webhooks{}}
}

// Apply takes one record of weir.tenants.v1; it ignores unknown facts.
// Records may be read again.
func (d *Directory) Apply(eventType string, value []byte) error {
	switch eventType {
	case contract.TypeOrganizationCreated:
		return apply(value, eventType, func(fact contract.OrganizationCreated) { d.call(fact.Organization, fact.Name) })
	case contract.TypeOrganizationRenamed:
		return apply(value, eventType, func(fact contract.OrganizationRenamed) { d.call(fact.Organization, fact.Name) })
	case contract.TypeAPIKeyIssued:
		return apply(value, eventType, d.keyIssued)
	case contract.TypeAPIKeyChanged:
		return apply(value, eventType, d.keyChanged)
	case contract.TypeAPIKeyRevoked:
		return apply(value, eventType, d.keyRevoked)
	case contract.TypeMemberAdded:
		return applyLocked(d, value, eventType, d.members.added)
	case contract.TypeMemberRoleChanged:
		return applyLocked(d, value, eventType, d.members.roleChanged)
	case contract.TypeMemberRemoved:
		return applyLocked(d, value, eventType, d.members.removed)
	case contract.TypeWebhookChanged:
		return applyLocked(d, value, eventType, d.webhooks.changed)
	case contract.TypeWebhookDeleted:
		return applyLocked(d, value, eventType, d.webhooks.deleted)
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

func applyLocked[F any](d *Directory, value []byte, eventType string, take func(fact F)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return apply(value, eventType, take)
}

func (d *Directory) call(organization, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[organization] = name
}

func (d *Directory) keyIssued(fact contract.APIKeyIssued) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[fact.Organization]
	if d.keyAt(fact.Organization, fact.APIKey) >= 0 {
		return
	}
	keys = append(keys, Key{ID: fact.APIKey, Name: fact.Name, Project: fact.Project, Environment: fact.Environment})
	d.keys[fact.Organization] = keys[max(0, len(keys)-maxKeys):]
}

func (d *Directory) keyChanged(fact contract.APIKeyChanged) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := d.keyAt(fact.Organization, fact.APIKey); i >= 0 {
		d.keys[fact.Organization][i].Name = fact.Name
	}
}

func (d *Directory) keyRevoked(fact contract.APIKeyRevoked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := d.keyAt(fact.Organization, fact.APIKey); i >= 0 {
		d.keys[fact.Organization][i].Revoked = true
	}
}

// keyAt returns the place of a key among those of its organization, or
// -1. The caller holds the lock.
func (d *Directory) keyAt(organization, id string) int {
	return slices.IndexFunc(d.keys[organization], func(key Key) bool { return key.ID == id })
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
		delete(d.names, fact.Organization)
		delete(d.keys, fact.Organization)
		delete(d.members, fact.Organization)
		delete(d.webhooks, fact.Organization)
	} else {
		d.keys[fact.Organization] = slices.DeleteFunc(d.keys[fact.Organization], func(key Key) bool { return key.Project == fact.Project })
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

// OrganizationName returns the name of an organization, or its id.
func (d *Directory) OrganizationName(organization string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.isHidden(organization, "") {
		return organization
	}
	return cmp.Or(d.names[organization], organization)
}

// Key returns a key of an organization; false for what is foreign,
// unknown or hidden.
func (d *Directory) Key(organization, id string) (Key, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i := d.keyAt(organization, id)
	if i < 0 || d.isHidden(organization, d.keys[organization][i].Project) {
		return Key{}, false
	}
	return d.keys[organization][i], true
}

// Keys returns the keys of an organization that are not revoked, sorted by name.
func (d *Directory) Keys(organization string) []Key {
	d.mu.RLock()
	defer d.mu.RUnlock()
	keys := slices.DeleteFunc(slices.Clone(d.keys[organization]), func(key Key) bool { return key.Revoked || d.isHidden(organization, key.Project) })
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return keys
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

// Follow returns a reader that keeps d up to date with weir.tenants.v1.
func (d *Directory) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicTenants, func(record bus.Record) error {
		if len(record.Value) == 0 { // a tombstone's project was forgotten when the deletion began
			return nil
		}
		return d.Apply(record.Header(contract.HeaderType), record.Value)
	}
	return state.NewReader(from, logger)
}

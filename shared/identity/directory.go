package identity

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/weirlog/weir/shared/contract"
)

// A Directory knows which organization a project belongs to, as weir.tenants.v1 tells. Safe for concurrent use.
type Directory struct {
	mu        sync.RWMutex
	byProject map[string]string
}

// NewDirectory makes an empty directory; feed it with Apply.
func NewDirectory() *Directory {
	return &Directory{byProject: map[string]string{}}
}

// Apply takes one record of weir.tenants.v1; facts about anything but projects pass by.
func (d *Directory) Apply(eventType string, value []byte) error {
	if eventType != contract.TypeProjectCreated {
		return nil
	}
	var fact contract.ProjectCreated
	if err := json.Unmarshal(value, &fact); err != nil {
		return fmt.Errorf("cannot read a fact of type %q: %w", eventType, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byProject[fact.Project] = fact.Organization
	return nil
}

// Organization returns the organization that project belongs to.
func (d *Directory) Organization(project string) (organization string, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	organization, known = d.byProject[project]
	return organization, known
}

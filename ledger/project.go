package ledger

import "fmt"

// NoProject is the error for a project of another organization.
type NoProject struct{ Project string }

func (e NoProject) Error() string {
	return fmt.Sprintf("the organization has no project %q", e.Project)
}

// Owns reports whether an organization owns a project.
type Owns func(organization, project string) bool

// Check returns NoProject for another's project; an empty one is allowed.
func (o Owns) Check(organization, project string) error {
	if project != "" && !o(organization, project) {
		return NoProject{Project: project}
	}
	return nil
}

package ledger

import "fmt"

// NoProject is the error for a project that is none of the organization's.
type NoProject struct{ Project string }

func (e NoProject) Error() string {
	return fmt.Sprintf("the organization has no project %q", e.Project)
}

// Owns reports whether a project is one of an organization's.
type Owns func(organization, project string) bool

// Check returns NoProject for a project that is not; none is allowed.
func (o Owns) Check(organization, project string) error {
	if project != "" && !o(organization, project) {
		return NoProject{Project: project}
	}
	return nil
}

package tenants

// A Role is what a member may do in an organization: see Permission.
type Role string

// The roles.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"     // may do all but create, change and remove owners
	Developer Role = "developer" // manages projects and keys, but those of prod
	Viewer    Role = "viewer"    // reads all, changes nothing
	Billing   Role = "billing"   // reads usage, manages webhooks, and nothing else
)

// Roles lists all of them, the most powerful first.
func Roles() []Role {
	return []Role{Owner, Admin, Developer, Viewer, Billing}
}

package tenants

// A Role is what a member may do in an organization: see Permission.
type Role string

// The roles.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"     // does everything but make, change and remove owners
	Developer Role = "developer" // has projects and keys, but those of prod
	Viewer    Role = "viewer"    // sees what there is, changes nothing
	Billing   Role = "billing"   // sees what is used, has webhooks, and nothing else
)

// Roles lists all of them, those who may do most first.
func Roles() []Role {
	return []Role{Owner, Admin, Developer, Viewer, Billing}
}

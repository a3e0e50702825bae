package tenants

// A Role is what a member may do in an organization.
type Role string

// The roles.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"
	Developer Role = "developer"
	Viewer    Role = "viewer"  // sees everything, changes nothing
	Billing   Role = "billing" // like a viewer, for those who pay
)

func roles() []Role {
	return []Role{Owner, Admin, Developer, Viewer, Billing}
}

// Manages tells whether the role may create projects, and create and revoke their API keys. A role that is unknown may
// not.
func (r Role) Manages() bool {
	return r == Owner || r == Admin || r == Developer
}

package signin

import (
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Store answers questions about sessions, passkeys, devices
// and failures to sign in.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections are the tables that show these events.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertPasskey),
		unitofwork.On(usePasskey),
		unitofwork.On(suspectPasskey),
		unitofwork.On(removePasskey),
		unitofwork.On(insertSession),
		unitofwork.On(renewSession),
		unitofwork.On(confirmSession),
		unitofwork.On(endSession),
		unitofwork.Unprojected[tenants.SessionRoleChanged](),  // the role is the member's
		unitofwork.Unprojected[tenants.MemberSignInsFailed](), // it is in the audit
	)
}

// Erasable are the tables of the room, in the order of their erasure.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("devices", erasure.OfOrganization), erasure.Rows("sign_in_failures", erasure.OfOrganization),
		erasure.Rows("passkeys", erasure.OfOrganization), erasure.Rows("sessions", erasure.OfOrganization),
	}
}

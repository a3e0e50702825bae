package signin

import (
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Store reads sessions, passkeys, devices and failed sign-ins.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps these events to their tables.
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
		unitofwork.Unprojected[tenants.SessionRoleChanged](),  // sessions have their member's role
		unitofwork.Unprojected[tenants.MemberSignInsFailed](), // only in the audit
	)
}

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("devices", erasure.OfOrganization), erasure.Rows("sign_in_failures", erasure.OfOrganization),
		erasure.Rows("passkeys", erasure.OfOrganization), erasure.Rows("sessions", erasure.OfOrganization),
	}
}

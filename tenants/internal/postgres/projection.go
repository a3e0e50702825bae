package postgres

import (
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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

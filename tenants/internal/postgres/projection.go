package postgres

import (
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Projections are the tables that show these events.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertMember),
		unitofwork.On(changeMemberRole),
		unitofwork.On(removeMember),
		unitofwork.On(changePassword),
		unitofwork.On(issueResetCode),
		unitofwork.On(identifyMember),
		unitofwork.On(insertInvitation),
		unitofwork.On(resendInvitation),
		unitofwork.On(revokeInvitation),
		unitofwork.On(acceptInvitation),
		unitofwork.On(insertPasskey),
		unitofwork.On(usePasskey),
		unitofwork.On(suspectPasskey),
		unitofwork.On(removePasskey),
		unitofwork.On(insertSession),
		unitofwork.On(renewSession),
		unitofwork.On(confirmSession),
		unitofwork.On(endSession),
		unitofwork.Unprojected[tenants.OwnerCodeIssued](), // its stream is read where it is asked for
		unitofwork.Unprojected[tenants.OwnerCodeUsed](),
		unitofwork.Unprojected[tenants.SessionRoleChanged](),  // the role is the member's
		unitofwork.Unprojected[tenants.MemberSignInsFailed](), // it is in the audit
	)
}

package app_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/openapitest"
)

// shared are the tests that need no replica of their own, which takes longer to
// start than most of them: each has organizations and addresses of its own.
var shared = []struct {
	name string
	test func(*testing.T, *process)
}{
	{"OwnSessions", testOwnSessions},
	{"SessionsAreOnesOwn", testSessionsAreOnesOwn},
	{"SessionsByTheAPI", testSessionsByTheAPI},
	{"ClientsAreShownAsText", testClientsAreShownAsText},
	{"AuditIsFiltered", testAuditIsFiltered},
	{"AuditorsToken", testAuditorsToken},
	{"AuditAsCSV", testAuditAsCSV},
	{"AuditPage", testAuditPage},
	{"AuditPageRefuses", testAuditPageRefuses},
	{"AuditPages", testAuditPages},
	{"RefusalsAtTheServer", testRefusalsAtTheServer},
	{"DeletedByCommand", testDeletedByCommand},
	{"CommonPasswordsAreRefused", testCommonPasswordsAreRefused},
	{"PagesNeedASession", testPagesNeedASession},
	{"OtherSitesCanDoNothing", testOtherSitesCanDoNothing},
	{"APIKeyByTheConsole", testAPIKeyByTheConsole},
	{"FaultsStandBesideTheirFields", testFaultsStandBesideTheirFields},
	{"RolesInTheConsole", testRolesInTheConsole},
	{"ConsoleIsolation", testConsoleIsolation},
	{"NamesStayNames", testNamesStayNames},
	{"ADeviceIsItsMembersAlone", testADeviceIsItsMembersAlone},
	{"ABrowserOfSeveralMembers", testABrowserOfSeveralMembers},
	{"DevicesAreForgotten", testDevicesAreForgotten},
	{"CredentialsAreInForceEverywhere", testCredentialsAreInForceEverywhere},
	{"ExpiryIsPublished", testExpiryIsPublished},
	{"FactsArePublished", testFactsArePublished},
	{"ForgedHostsMakeNoLinks", testForgedHostsMakeNoLinks},
	{"HeldRequestsEndWithTheirCredential", testHeldRequestsEndWithTheirCredential},
	{"Invitations", testInvitations},
	{"InvitingDisclosesNoMemberElsewhere", testInvitingDisclosesNoMemberElsewhere},
	{"InvitationsGoWithTheirMaker", testInvitationsGoWithTheirMaker},
	{"KeyFormFaults", testKeyFormFaults},
	{"Members", testMembers},
	{"RemovedMembersAreOut", testRemovedMembersAreOut},
	{"RolesAreInForceAtOnce", testRolesAreInForceAtOnce},
	{"TokensMakeNoOwners", testTokensMakeNoOwners},
	{"ResetCodeByTheAPI", testResetCodeByTheAPI},
	{"APIKeysOfAnOrganization", testAPIKeysOfAnOrganization},
	{"OpenAPIMatchesRoutes", testOpenAPIMatchesRoutes},
	{"RevocationWaitsForNobody", testRevocationWaitsForNobody},
	{"SignInByPasskey", testSignInByPasskey},
	{"ResetRemovesPasskeys", testResetRemovesPasskeys},
	{"CopiesOfPasskeysAreFound", testCopiesOfPasskeysAreFound},
	{"PasskeysAreUnique", testPasskeysAreUnique},
	{"PasskeysAreOnesOwn", testPasskeysAreOnesOwn},
	{"PasswordsOff", testPasswordsOff},
	{"CodesLetInWherePasswordsAreOff", testCodesLetInWherePasswordsAreOff},
	{"WhoSwitchesPasswords", testWhoSwitchesPasswords},
	{"InviteAndJoin", testInviteAndJoin},
	{"CodesDiscloseToTheirHolderOnly", testCodesDiscloseToTheirHolderOnly},
	{"PasswordReset", testPasswordReset},
	{"RolesOverMembers", testRolesOverMembers},
	{"CodesGoWithTheOperator", testCodesGoWithTheOperator},
	{"TheOnlyOwnerInTheConsole", testTheOnlyOwnerInTheConsole},
	{"CodesGoWithTheirIssuer", testCodesGoWithTheirIssuer},
	{"Renames", testRenames},
	{"Rotation", testRotation},
	{"RotationRefusals", testRotationRefusals},
	{"AccessOfKeys", testAccessOfKeys},
	{"Refusals", testRefusals},
	{"Pages", testPages},
	{"IdempotencyKey", testIdempotencyKey},
	{"SignInAndOut", testSignInAndOut},
	{"SessionExpires", testSessionExpires},
}

func TestShared(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	for i, s := range shared {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			own := *p
			own.address = fmt.Sprintf("198.18.0.%d", i) // attempts are limited by it
			own.checked = openapitest.Handler(t, p.Handler())
			s.test(t, &own)
		})
	}
}

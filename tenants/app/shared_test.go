package app_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi/openapitest"
)

// shared are the tests that need no replica of their own, which takes longer to
// start than most of them: each has organizations and addresses of its own.
var shared = []struct {
	name string
	test func(*testing.T, *process)
}{
	{"AuditHasWhoAndWhat", testAuditHasWhoAndWhat},
	{"DeletionIsCancelled", testDeletionIsCancelled},
	{"GuessesDoNotLockOutAKnownDevice", testGuessesDoNotLockOutAKnownDevice},
	{"AttemptsWithCodesAreLimited", testAttemptsWithCodesAreLimited},
	{"OwnerLinkEndsWithTheFirstMember", testOwnerLinkEndsWithTheFirstMember},
	{"ExposedKeys", testExposedKeys},
	{"TierOfTheLedger", testTierOfTheLedger},
	{"Shapes", testShapes},
	{"RefusalsAtTheServer", testRefusalsAtTheServer},
	{"DeletedByCommand", testDeletedByCommand},
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
	{"Members", testMembers},
	{"RemovedMembersAreOut", testRemovedMembersAreOut},
	{"RolesAreInForceAtOnce", testRolesAreInForceAtOnce},
	{"OpenAPIMatchesRoutes", testOpenAPIMatchesRoutes},
	{"RevocationWaitsForNobody", testRevocationWaitsForNobody},
	{"ResetRemovesPasskeys", testResetRemovesPasskeys},
	{"CopiesOfPasskeysAreFound", testCopiesOfPasskeysAreFound},
	{"PasskeysAreUnique", testPasskeysAreUnique},
	{"PasswordsOff", testPasswordsOff},
	{"CodesLetInWherePasswordsAreOff", testCodesLetInWherePasswordsAreOff},
	{"CodesDiscloseToTheirHolderOnly", testCodesDiscloseToTheirHolderOnly},
	{"CodesGoWithTheOperator", testCodesGoWithTheOperator},
	{"CodesGoWithTheirIssuer", testCodesGoWithTheirIssuer},
	{"Rotation", testRotation},
	{"AccessOfKeys", testAccessOfKeys},
	{"Refusals", testRefusals},
	{"Pages", testPages},
	{"IdempotencyKey", testIdempotencyKey},
}

func TestShared(t *testing.T) {
	w := newWorld(t)
	w.grace, w.output = time.Hour, &bytes.Buffer{}
	p := w.start(t, operatorToken)
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

package tenants_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

const golden = "testdata/events"

// samples has one event of each kind, and, behind a +, one of
// each form with later members. Golden files, which are never
// edited, pin their encoding: stored events must decode forever.
func samples() map[string]tenants.Event {
	token := tokenIssued()
	token.Configured = true
	key := keyIssued()
	key.ExpiresAt = &later
	narrow := keyIssued()
	narrow.Access = tenants.ProjectAccess
	ofPages := keyIssued()
	ofPages.Sending = tenants.Sending{Lenient: true, Origins: []string{"https://shop.example"}}
	readopted := keyIssued()
	readopted.ReadoptedAt = later
	return map[string]tenants.Event{
		"tenants.v1.organization_renamed":        tenants.OrganizationRenamed{Organization: "org_1", Name: "Acme & Co", At: later},
		"tenants.v1.project_renamed":             tenants.ProjectRenamed{Project: "prj_1", Name: "Shop 2", At: later},
		"tenants.v1.member_role_changed":         tenants.MemberRoleChanged{Member: "mem_1", Role: tenants.Viewer, At: later},
		"tenants.v1.member_removed":              tenants.MemberRemoved{Member: "mem_1", At: later},
		"tenants.v1.member_mails_chosen":         tenants.MemberMailsChosen{Member: "mem_1", Without: []tenants.MailKind{tenants.ThresholdMail, tenants.StatementMail}, At: later},
		"tenants.v1.member_password_changed":     tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$b3RoZXI", Reset: true, At: later},
		"tenants.v1.member_reset_code_issued":    resetCodeIssued(),
		"tenants.v1.member_identified":           memberIdentified(),
		"tenants.v1.invitation_made":             invitationMade(),
		"tenants.v1.invitation_resent":           tenants.InvitationResent{Invitation: "inv_1", Digest: digest("cd34"), At: later, ExpiresAt: later.Add(tenants.InvitationLifetime)},
		"tenants.v1.member_reset_code_issued+by": tenants.MemberResetCodeIssued{Member: "mem_1", Digest: digest("ab12"), At: noon, ExpiresAt: noon.Add(tenants.ResetCodeLifetime), By: "mem_2"},
		"tenants.v1.invitation_resent+by":        tenants.InvitationResent{Invitation: "inv_1", Digest: digest("cd34"), At: later, ExpiresAt: later.Add(tenants.InvitationLifetime), By: "mem_2"},
		"tenants.v1.invitation_revoked":          tenants.InvitationRevoked{Invitation: "inv_1", At: later},
		"tenants.v1.invitation_accepted":         tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: later},
		"tenants.v1.owner_code_issued":           ownerCodeIssued(),
		"tenants.v1.owner_code_used":             tenants.OwnerCodeUsed{Organization: "org_1", Member: "mem_1", At: later},
		"tenants.v1.session_role_changed":        tenants.SessionRoleChanged{Session: "ses_1", Role: tenants.Admin, At: later},
		"tenants.v1.organization_created":        tenants.OrganizationCreated{Organization: "org_1", Name: "Acme ä <&>", Tier: tenants.Scale, At: noon},
		"tenants.v1.deletion_requested": tenants.DeletionRequested{Deletable: tenants.Deletable{Organization: "org_1", Project: "prj_1"}, At: noon,
			BeginsAt: later},
		"tenants.v1.deletion_requested+organization": tenants.DeletionRequested{Deletable: tenants.Deletable{Organization: "org_1"}, At: noon, BeginsAt: noon},
		"tenants.v1.deletion_cancelled":              tenants.DeletionCancelled{Deletable: tenants.Deletable{Organization: "org_1", Project: "prj_1"}, At: later},
		"tenants.v1.deletion_begun": tenants.DeletionBegun{Deletable: tenants.Deletable{Organization: "org_1", Project: "prj_1"}, At: later,
			GoneBy: later.Add(tenants.ErasureTimeout)},
		"tenants.v1.deletion_finished": tenants.DeletionFinished{Deletable: tenants.Deletable{Organization: "org_1", Project: "prj_1"}, At: later,
			Removed:      map[string]map[string]int64{"grouping": {"error_groups": 2, "occurrences": 7}, "ledger": {"bus_parked": 0}},
			ReducedLines: 4, ReducedHash: strings.Repeat("ab", 32)},
		"tenants.v1.organization_created+readopted": tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Scale, At: noon,
			ReadoptedAt: later},
		"tenants.v1.project_created+readopted": tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon, ReadoptedAt: later},
		"tenants.v1.api_key_issued+readopted":  readopted,
		"tenants.v1.project_created":           tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon},
		"tenants.v1.api_key_issued":            key,
		"tenants.v1.api_key_revoked":           tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: later},
		"tenants.v1.service_token_issued":      token,
		"tenants.v1.service_token_revoked":     tenants.ServiceTokenRevoked{ServiceToken: "tok_1", Reason: "", At: later},
		"tenants.v1.member_added":              memberAdded(),
		"tenants.v1.session_started":           sessionStarted(),
		"tenants.v1.session_ended":             tenants.SessionEnded{Session: "ses_1", Reason: "signed out", At: later},
		"tenants.v1.session_started+passkey":   passkeySession(),
		"tenants.v1.session_started+name":      namedSession(),
		"tenants.v1.session_renewed":           sessionRenewed(),
		"tenants.v1.session_confirmed":         sessionConfirmed(),
		"tenants.v1.api_key_rotated":           tenants.APIKeyRotated{APIKey: "key_1", To: "key_2", ExpiresAt: later, At: noon},
		"tenants.v1.api_key_changed":           tenants.APIKeyChanged{APIKey: "key_1", Name: "Shop, live", RatePerMinute: 30, Access: tenants.WriteAccess, At: later},
		"tenants.v1.api_key_issued+access":     narrow,
		"tenants.v1.api_key_issued+origins":    ofPages,
		"tenants.v1.api_key_exposed":           keyExposed(),
		"tenants.v1.api_key_curtailed":         tenants.APIKeyCurtailed{APIKey: "key_1", ExpiresAt: later, Reason: "found in public", At: noon},
		"tenants.v1.security_policy_set": tenants.SecurityPolicySet{Organization: "org_1", LeakedKeys: tenants.RotateLeaked,
			PlainHTTPKeys: tenants.RevokePlainHTTP, At: noon},
		"tenants.v1.security_policy_set+passwords_off": tenants.SecurityPolicySet{Organization: "org_1", LeakedKeys: tenants.NotifyLeaked,
			PlainHTTPKeys: tenants.FlagPlainHTTP, At: noon, PasswordsOff: true},
		"tenants.v1.member_sign_ins_failed": tenants.MemberSignInsFailed{Failures: "sif_1", Organization: "org_1", Member: "mem_1",
			Failed: 12, Refused: 3, Networks: []string{"192.0.2.1/32", "2001:db8::/64"}, Since: noon, At: later},
		"tenants.v1.change_reported": tenants.ChangeReported{Project: "prj_1", Action: "error_alert.changed", TargetKind: "error_alert", Target: "alr_1",
			TargetName: "Shop", Before: map[string]string{"when": "new from 2"}, After: map[string]string{"when": "new from 3", "levels": "error"}, At: noon},
		"tenants.v1.webhook_created":    webhookCreated(),
		"tenants.v1.webhook_changed":    tenants.WebhookChanged{Webhook: "whk_1", URL: "https://hooks.example/other", Events: []string{"quota.exhausted"}, Format: tenants.SlackFormat, At: later},
		"tenants.v1.webhook_rotated":    webhookRotated(),
		"tenants.v1.webhook_switched":   tenants.WebhookSwitched{Webhook: "whk_1", Reason: "Nothing was taken for three days.", At: later},
		"tenants.v1.webhook_deleted":    tenants.WebhookDeleted{Webhook: "whk_1", At: later},
		"tenants.v1.passkey_registered": passkeyRegistered(7),
		"tenants.v1.passkey_used":       tenants.PasskeyUsed{Passkey: "pky_1", Counter: 8, BackedUp: true, At: later},
		"tenants.v1.passkey_suspected":  tenants.PasskeySuspected{Passkey: "pky_1", Counter: 7, At: later},
		"tenants.v1.passkey_removed":    tenants.PasskeyRemoved{Passkey: "pky_1", At: later},
	}
}

// What is stored today has the form of the golden file.
func TestEventsEncodeAsEver(t *testing.T) {
	for want, event := range samples() {
		name, data, err := tenants.EncodeEvent(event)
		if err != nil || name != nameOf(want) {
			t.Errorf("%T: got name %q, %v; want %q", event, name, err, want)
			continue
		}
		addMissing(t, filepath.Join(golden, want+".json"), data)
		if stored := read(t, want+".json"); string(data) != stored {
			t.Errorf("%s:\n got %s\nwant %s", name, data, stored)
		}
	}
}

// nameOf is the name of an event of whatever form.
func nameOf(sample string) string {
	name, _, _ := strings.Cut(sample, "+")
	return name
}

// All stored forms are still decoded.
func TestGoldenEventsDecode(t *testing.T) {
	files, err := os.ReadDir(golden)
	if err != nil || len(files) < len(samples()) {
		t.Fatalf("%s has %d files, %v; every name needs one", golden, len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".json")
		event, err := tenants.DecodeEvent(nameOf(name), []byte(read(t, file.Name())))
		if err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		} else if want := samples()[name]; want != nil && !reflect.DeepEqual(event, want) {
			t.Errorf("%s: got %+v, want %+v", file.Name(), event, want)
		}
	}
}

// Only stored names are known.
func TestKnownEvents(t *testing.T) {
	for _, event := range tenants.Events() {
		if !tenants.CanDecode(tenants.EventName(event)) {
			t.Errorf("%s is unknown", tenants.EventName(event))
		}
	}
	if tenants.CanDecode("tenants.v9.project_created") {
		t.Error("an event of a later version is known")
	}
}

// An event of a future version stops the reader instead of being skipped.
func TestUnknownEventFails(t *testing.T) {
	if event, err := tenants.DecodeEvent("tenants.v9.project_created", []byte(`{}`)); err == nil {
		t.Errorf("got %+v", event)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden, file))
	testenv.Must(t, err)
	return strings.TrimSuffix(string(data), "\n")
}

package contract_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// -add writes the golden files that are missing. It never touches one that
// exists: what was published stays readable.
var add = flag.Bool("add", false, "write the golden files that are missing")

var at = time.Date(2026, 11, 21, 9, 30, 0, 123456789, time.UTC)

// group is that of these samples.
var group = contract.ErrorGroup{Organization: "org_1", Project: "prj_1", Group: "grp_1", Title: "TypeError: x is undefined", Type: "TypeError", Culprit: "cart.total"}

// changed is a decision about the group of these samples.
func changed(c contract.ErrorGroupChanged) *contract.ErrorGroupChanged {
	c.ErrorGroup, c.Version, c.At = group, 7, at
	return &c
}

// samples has one value of every JSON event; its key names the golden
// file: <type>.json, or <type>.<kind>.json if an event's members depend
// on the kind of thing.
func samples() map[string]any {
	expires, renew := at.AddDate(0, 3, 0), at.Add(3*time.Hour)
	return map[string]any{
		contract.TypeCredentialChanged: &contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1",
			Project: "prj_1", Environment: "prod", State: contract.CredentialActive, ExpiresAt: &expires, RatePerMinute: 30, Version: 7},
		contract.TypeCredentialChanged + ".access": &contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1",
			Project: "prj_1", Environment: "prod", State: contract.CredentialActive, Version: 7, Access: contract.AccessWrite},
		contract.TypeCredentialChanged + ".origins": &contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1",
			Project: "prj_1", Environment: "prod", State: contract.CredentialActive, Version: 7, Access: contract.AccessWrite,
			Lenient: true, Origins: []string{"https://shop.example"}},
		contract.TypeCredentialChanged + ".session": &contract.Credential{Kind: contract.CredentialSession, ID: "ses_1",
			Organization: "org_1", Member: "mem_1", Scopes: []string{"role:owner"}, State: contract.CredentialActive,
			ExpiresAt: &expires, Version: 8},
		contract.TypeCredentialChanged + ".session_renewed": &contract.Credential{Kind: contract.CredentialSession, ID: "ses_1",
			Organization: "org_1", Member: "mem_1", Scopes: []string{"role:owner"}, State: contract.CredentialActive,
			ExpiresAt: &expires, Version: 9, AuthenticatedAt: &at, RenewAt: &renew},
		contract.TypeCredentialChanged + ".session_named": &contract.Credential{Kind: contract.CredentialSession, ID: "ses_1",
			Organization: "org_1", Member: "mem_1", Scopes: []string{"role:owner"}, State: contract.CredentialActive,
			ExpiresAt: &expires, Version: 8, Name: "Ada"},
		contract.TypeAccountChanged: &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, Used: 42,
			State: contract.AccountActive, Counted: contract.Positions{0: 12, 11: 3}, Version: 9},
		contract.TypeAccountChanged + ".retention": &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, Used: 42,
			State: contract.AccountActive, RetentionDays: 14, Counted: contract.Positions{0: 12, 11: 3}, Version: 9},
		contract.TypeAccountChanged + ".overage": &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, OverageCap: 1 << 20, NextOverageCap: 1 << 21, Used: 42,
			State: contract.AccountActive, RetentionDays: 14, Counted: contract.Positions{0: 12, 11: 3}, Version: 9},
		contract.TypeCredentialsCompared: &contract.CredentialsCompared{Start: "4f1c"},
		contract.TypeAccountsCounted:     &contract.AccountsCounted{Counted: contract.Positions{0: 12, 11: 3}},
		contract.TypeOrganizationCreated: &contract.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: "scale", CreatedAt: at},
		contract.TypeOrganizationRenamed: &contract.OrganizationRenamed{Organization: "org_1", Name: "Acme & Co", RenamedAt: at},
		contract.TypeProjectRenamed:      &contract.ProjectRenamed{Organization: "org_1", Project: "prj_1", Name: "Store", RenamedAt: at},
		contract.TypeProjectCreated:      &contract.ProjectCreated{Organization: "org_1", Project: "prj_1", Name: "Shop", CreatedAt: at},
		contract.TypeAPIKeyIssued: &contract.APIKeyIssued{Organization: "org_1", Project: "prj_1", APIKey: "key_1",
			Environment: "prod", Name: "checkout", IssuedAt: at},
		contract.TypeAPIKeyChanged: &contract.APIKeyChanged{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Name: "basket", ChangedAt: at},
		contract.TypeAPIKeyRevoked: &contract.APIKeyRevoked{Organization: "org_1", Project: "prj_1", APIKey: "key_1",
			Reason: "rotated", RevokedAt: at},
		contract.TypeDeletionRequested:                   &contract.DeletionRequested{Organization: "org_1", Project: "prj_1", RequestedAt: at, BeginsAt: at.AddDate(0, 0, 7)},
		contract.TypeDeletionRequested + ".organization": &contract.DeletionRequested{Organization: "org_1", RequestedAt: at, BeginsAt: at},
		contract.TypeDeletionCancelled:                   &contract.DeletionCancelled{Organization: "org_1", Project: "prj_1", CancelledAt: at},
		contract.TypeDeletionBegun:                       &contract.DeletionBegun{Organization: "org_1", Project: "prj_1", BegunAt: at, GoneBy: at.Add(15 * time.Minute)},
		contract.TypeDeletionFinished:                    &contract.DeletionFinished{Organization: "org_1", Project: "prj_1", FinishedAt: at},
		contract.TypeMemberAdded:                         &contract.MemberAdded{Organization: "org_1", Member: "mem_1", Name: "Ada Lovelace", Role: "developer", AddedAt: at},
		contract.TypeWebhookChanged: &contract.WebhookChanged{Organization: "org_1", Webhook: "whk_1", Host: "hooks.example", Events: []string{"error_alert.fired"},
			On: true, ChangedAt: at},
		contract.TypeWebhookDeleted:    &contract.WebhookDeleted{Organization: "org_1", Webhook: "whk_1", DeletedAt: at},
		contract.TypeMemberRoleChanged: &contract.MemberRoleChanged{Organization: "org_1", Member: "mem_1", Role: "admin", ChangedAt: at},
		contract.TypeMemberRemoved:     &contract.MemberRemoved{Organization: "org_1", Member: "mem_1", RemovedAt: at},
		contract.TypeErased: &contract.Erased{Organization: "org_1", Project: "prj_1", Module: "grouping",
			Removed: map[string]int64{"error_groups": 3, "occurrences": 12}, ErasedAt: at},
		contract.TypeHolderChanged: &contract.Holder{Organization: "org_1", Project: "prj_1", State: contract.CredentialRevoked, Version: 3},
		contract.TypeThresholdReached: &contract.ThresholdReached{Organization: "org_1", PeriodStart: at, Percent: 80,
			Quota: 100, Used: 81, Batch: batch, At: at},
		contract.TypeQuotaExhausted: &contract.QuotaExhausted{Organization: "org_1", PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0),
			Quota: 100, Used: 100, At: at},
		contract.TypeQuotaRestored: &contract.QuotaRestored{Organization: "org_1", PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0),
			Quota: 150, Used: 100, At: at},
		contract.TypeOverageBegun: &contract.OverageBegun{Organization: "org_1", PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0),
			Quota: 100, Used: 107, At: at},
		contract.TypeTierChanged:   &contract.TierChanged{Organization: "org_1", Before: "indie", Tier: "scale", At: at},
		contract.TypeGrantExpiring: &contract.GrantExpiring{Organization: "org_1", Grant: "grt_1", Remaining: 42, ExpiresAt: at.AddDate(0, 0, 7), At: at},
		contract.TypeGrantExpired:  &contract.GrantExpired{Organization: "org_1", Grant: "grt_1", Expired: 42, At: at},
		contract.TypePeriodClosed: &contract.PeriodClosed{Organization: "org_1", PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0),
			Granted: 200, Consumed: 100, Overage: 7, Expired: 90, Voided: 10, Overshoot: 3, At: at},
		contract.TypeAdjusted: &contract.Adjusted{Organization: "org_1", Adjustment: "adj_1", Bytes: -42, PeriodStart: at,
			OfPeriodStart: &at, At: at},
		contract.TypeStatementReady: &contract.StatementReady{Organization: "org_1", Statement: 7, Hash: strings.Repeat("0f", 32), PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0),
			Used: 107, Overage: 7, At: at},
		contract.TypeAccountChanged + ".budgets": &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, Used: 42,
			State: contract.AccountActive, RetentionDays: 14, Counted: contract.Positions{0: 12, 11: 3}, Version: 9, Budgets: []contract.AccountBudget{
				{Project: "prj_1", Bytes: 1000, Used: 42}, {APIKey: "key_1", Bytes: 10, Used: 7, Exhausted: true},
			}},
		contract.TypeAccountChanged + ".budget_since": &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, Used: 42, State: contract.AccountActive,
			RetentionDays: 14, Counted: contract.Positions{0: 12}, Version: 9, Budgets: []contract.AccountBudget{{Project: "prj_1", Bytes: 1000, Used: 42, Since: 7}}},
		contract.TypeAccountChanged + ".raises": &contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, AnchorDay: 1,
			PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Quota: 1 << 30, NextQuota: 1 << 30, Used: 42, State: contract.AccountActive, Raises: 3,
			RetentionDays: 14, Counted: contract.Positions{0: 12}, Version: 9},
		contract.TypeBudgetThresholdReached: &contract.BudgetThresholdReached{Organization: "org_1", Project: "prj_1", PeriodStart: at,
			PeriodEnd: at.AddDate(0, 1, 0), Percent: 80, Budget: 100, Used: 81, Batch: batch, At: at},
		contract.TypeBudgetExhausted: &contract.BudgetExhausted{Organization: "org_1", APIKey: "key_1", PeriodStart: at,
			PeriodEnd: at.AddDate(0, 1, 0), Budget: 100, Used: 100, At: at},
		contract.TypeBudgetRestored: &contract.BudgetRestored{Organization: "org_1", Project: "prj_1", PeriodStart: at,
			PeriodEnd: at.AddDate(0, 1, 0), Budget: 150, Used: 100, At: at},
		contract.TypeQuotaRefused + ".budget": &contract.QuotaRefused{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod",
			RequestID: "req_1", At: at, Bytes: 500, Remaining: 272, PeriodStart: at, Quota: 1000, Exhausts: true, Requests: 3,
			Reason: contract.ReasonProjectBudget},
		contract.TypeQuotaRefused + ".since": &contract.QuotaRefused{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod",
			RequestID: "req_1", At: at, Bytes: 500, Remaining: 272, PeriodStart: at, Quota: 1000, Since: 3, Exhausts: true, Requests: 1},
		contract.TypeErrorGroupCreated: &contract.ErrorGroupCreated{ErrorGroup: group, FirstSeen: at},
		contract.TypeErrorGroupCreated + ".path": &contract.ErrorGroupCreated{ErrorGroup: group, FirstSeen: at,
			Addressed: contract.Addressed{Path: "/console/errors/grp_1"}},
		contract.TypeErrorGroupCreated + ".cause": &contract.ErrorGroupCreated{ErrorGroup: group, FirstSeen: at, Entry: "ent_1", Environment: "prod", Release: "2.14.0",
			Cause: "Its first error came in 2.14.0 in prod.", Addressed: contract.Addressed{Path: "/console/errors/grp_1"}},
		contract.TypeSearchAlertFired: &contract.SearchAlert{Organization: "org_1", Project: "prj_1", Search: "srch_1", Name: "Checkout fails", Query: "level:error checkout",
			Before: "ok", Condition: "more_than", Threshold: 10, Entries: 12, From: at, To: at.Add(5 * time.Minute), Examples: []string{"checkout failed"}, At: at,
			Addressed: contract.Addressed{MailTo: &contract.MailTo{Roles: []string{"owner"}, Members: []string{"mem_1"}}, Path: "/console/logs?q=checkout"}},
		contract.TypeSearchAlertResolved: &contract.SearchAlert{Organization: "org_1", Search: "srch_1", Name: "Nothing came", Query: "", Before: "firing",
			Condition: "fewer_than", Threshold: 1, Entries: 7, From: at, To: at.Add(time.Hour), At: at, Test: true},
		contract.TypeSearchAlertUnevaluated: &contract.SearchAlert{Organization: "org_1", Search: "srch_1", Name: "Slow", Query: "*x*", Before: "ok",
			Condition: "more_than", Threshold: 10, Entries: 4, Incomplete: true, From: at, To: at.Add(time.Hour), Reason: "The search reads too much.", At: at},
		contract.TypeErrorGroupResolved: changed(contract.ErrorGroupChanged{Status: "resolved", Before: "unresolved", NextRelease: true, Actor: "mem_1"}),
		contract.TypeErrorGroupReopened: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "resolved", Actor: "key_1"}),
		contract.TypeErrorGroupRegressed: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "resolved", Release: "2.14.0", Environment: "prod",
			Cause: "It happened in 2.14.0 in prod after it was resolved in 2.13.0."}),
		contract.TypeErrorGroupRegressed + ".linked": changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "archived",
			Links:     []string{"https://tracker.example/PAY-7"},
			Addressed: contract.Addressed{Webhooks: []string{"whk_1"}, Path: "/console/errors/grp_1"}}),
		contract.TypeErrorGroupIgnored: changed(contract.ErrorGroupChanged{Status: "ignored", Before: "unresolved", Assignee: "mem_1", Actor: "mem_1"}),
		contract.TypeErrorGroupUnignored: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "ignored",
			Cause: "It happened 100 times within an hour."}),
		contract.TypeErrorGroupQuiet: changed(contract.ErrorGroupChanged{Status: "archived", Before: "unresolved",
			Cause: "It had no error for 30 days."}),
		contract.TypeErrorGroupMerged:   changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "resolved", Into: "grp_2", Actor: "mem_1"}),
		contract.TypeErrorGroupSplit:    changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "unresolved", Into: "grp_2", Actor: "mem_1"}),
		contract.TypeErrorGroupUnmerged: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "unresolved", From: "grp_2", Actor: "mem_1"}),
		contract.TypeErrorGroupAssigned: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "unresolved", Assignee: "payments", Actor: "mem_1"}),
		contract.TypeErrorGroupSpiking: changed(contract.ErrorGroupChanged{Status: "unresolved", Before: "unresolved",
			ErrorSpike: contract.ErrorSpike{Hour: at.Truncate(time.Hour), Count: 240, Expected: 3.5}, Cause: "It happened 240 times in the hour from 2026-11-21 09:00 UTC, where 3.5 were expected."}),
		contract.TypeErrorGroupMentioned: &contract.ErrorGroupMentioned{ErrorGroup: group, Note: "@Ada Lovelace, is this yours?", Members: []string{"mem_1"}, More: 2, Actor: "mem_2", ActorName: "Bob", At: at,
			Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: []string{"mem_1"}}, Path: "/console/errors/grp_1"}},
		contract.TypeErrorAlertFired: &contract.ErrorAlert{Organization: "org_1", Project: "prj_1", Alert: "alr_1", Name: "Shop", More: 3, At: at,
			Groups: []contract.AlertedGroup{{Group: "grp_1", Title: "TypeError: x is undefined", Type: "TypeError", Culprit: "cart.total", Count: 2,
				Environment: "prod", Trigger: "new", Cause: "It is new: it has happened 2 times.", Path: "/console/errors/grp_1"}},
			Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: []string{"mem_1"}}, Path: "/console/errors?project=prj_1"}},
		contract.TypeErrorsChangeReported: &contract.ChangeReported{Organization: "org_1", Project: "prj_1", Action: "error_alert.changed",
			Target: contract.ReportedTarget{Kind: "error_alert", ID: "alr_1", Name: "Shop"}, Actor: "mem_1", Request: "req_1",
			Address: "192.0.2.7", Client: "curl/8.5.0", Before: map[string]string{"when": "new from 2"}, After: map[string]string{"when": "new from 3", "levels": "error"}, At: at},
		contract.TypeIngestChangeReported: &contract.ChangeReported{Organization: "org_1", Project: "prj_1", Action: "ingest_rules.set",
			Target: contract.ReportedTarget{Kind: "project", ID: "prj_1"}, Actor: "mem_1", After: map[string]string{"version": "1", "added": "redact email"}, At: at},
		contract.TypeRulesChanged:  &contract.IngestRules{Organization: "org_1", Project: "prj_1", Version: 3, Text: "redact email\ndrop level:debug"},
		contract.TypeRulesCompared: &contract.RulesCompared{},
		contract.TypeKeyUsed: &contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Accepted: 40, Rejected: 2,
			FirstAcceptedAt: &at, LastUsedAt: at, Address: "192.0.2.7", Client: "curl/8.5.0"},
		contract.TypeKeyUsed + ".read": &contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Read: 12,
			LastUsedAt: at, Address: "192.0.2.7"},
		contract.TypeKeyUsed + ".refused": &contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Refused: 3,
			LastUsedAt: at},
		contract.TypeKeyExposed: &contract.KeyExposed{Organization: "org_1", Project: "prj_1", APIKey: "key_1",
			How: contract.ExposedPlainHTTP, At: at, Address: "192.0.2.7", Client: "curl/8.5.0"},
		contract.TypeRequestsCounted: &contract.RequestsCounted{Organization: "org_1", Process: "run_1", Sequence: 7, From: at, To: at.Add(time.Minute),
			Counts: []contract.RequestCount{
				{Project: "prj_1", APIKey: "key_1", Environment: "prod", Outcome: contract.OutcomeAccepted, Requests: 40, Entries: 400, Bytes: 9000, KeyInBody: 2},
				{Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: 1, Bytes: 11},
			}},
		contract.TypeQuotaRefused: &contract.QuotaRefused{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod",
			RequestID: "req_1", At: at, Bytes: 500, Remaining: 272, PeriodStart: at, Quota: 1000, Exhausts: true, Requests: 3},
	}
}

// Every event ever published can be read, and is still written the same way.
func TestGoldenJSONEvents(t *testing.T) {
	for eventType, sample := range samples() {
		t.Run(eventType, func(t *testing.T) {
			golden := readGolden(t, eventType+".json", mustIndent(t, sample))
			read := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
			if err := json.Unmarshal(golden, read); err != nil {
				t.Fatalf("cannot read what was published: %v", err)
			}
			if !reflect.DeepEqual(read, sample) {
				t.Errorf("read %+v, want %+v", read, sample)
			}
			if written := mustIndent(t, read); !bytes.Equal(written, golden) {
				t.Errorf("written as\n%s\nwas published as\n%s", written, golden)
			}
		})
	}
}

// Each golden file has a sample: without one its event could no longer be read.
func TestNoGoldenFileIsForgotten(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	testenv.Must(t, err)
	known := slices.Collect(maps.Keys(samples()))
	known = append(known, contract.TypeLogsAccepted, contract.TypeLogsAccepted+".retention", contract.TypeLogsAccepted+".request")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if !slices.Contains(known, name) {
			t.Errorf("%s belongs to no event", file)
		}
	}
}

func readGolden(t *testing.T, name string, ifMissing []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	golden, err := os.ReadFile(path)
	if os.IsNotExist(err) && *add {
		golden, err = ifMissing, os.WriteFile(path, ifMissing, 0o600)
	}
	if err != nil {
		t.Fatalf("no golden file (go test ./contract -add writes it): %v", err)
	}
	return golden
}

func mustIndent(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	testenv.Must(t, err)
	return append(text, '\n')
}

package contract

import (
	"fmt"
	"time"
)

// SpecVersion is the CloudEvents version of every event.
const SpecVersion = "1.0"

// Headers of every event.
const (
	HeaderSpecVersion  = "ce_specversion"
	HeaderID           = "ce_id"
	HeaderType         = "ce_type"
	HeaderSource       = "ce_source"
	HeaderTime         = "ce_time" // RFC 3339 UTC, nanoseconds
	HeaderOrganization = "ce_organization"
	HeaderContentType  = "content-type"
	HeaderTraceparent  = "traceparent"
)

// Event types: topic, then what happened, in the past tense. A type
// is never renamed.
const (
	TypeLogsAccepted           = "weir.logs.v1.accepted"
	TypeCredentialChanged      = "weir.credentials.v1.changed"
	TypeHolderChanged          = "weir.credentials.v1.holder_changed"
	TypeCredentialsCompared    = "weir.credentials.v1.compared"
	TypeAccountChanged         = "weir.accounts.v1.changed"
	TypeAccountsCounted        = "weir.accounts.v1.counted"
	TypeOrganizationCreated    = "weir.tenants.v1.organization_created"
	TypeOrganizationRenamed    = "weir.tenants.v1.organization_renamed"
	TypeProjectCreated         = "weir.tenants.v1.project_created"
	TypeProjectRenamed         = "weir.tenants.v1.project_renamed"
	TypeAPIKeyIssued           = "weir.tenants.v1.api_key_issued"
	TypeAPIKeyChanged          = "weir.tenants.v1.api_key_changed"
	TypeAPIKeyRevoked          = "weir.tenants.v1.api_key_revoked"
	TypeMemberAdded            = "weir.tenants.v1.member_added"
	TypeMemberRoleChanged      = "weir.tenants.v1.member_role_changed"
	TypeMemberRemoved          = "weir.tenants.v1.member_removed"
	TypeWebhookChanged         = "weir.tenants.v1.webhook_changed"
	TypeWebhookDeleted         = "weir.tenants.v1.webhook_deleted"
	TypeDeletionRequested      = "weir.tenants.v1.deletion_requested"
	TypeDeletionCancelled      = "weir.tenants.v1.deletion_cancelled"
	TypeDeletionBegun          = "weir.tenants.v1.deletion_begun"
	TypeDeletionFinished       = "weir.tenants.v1.deletion_finished"
	TypeThresholdReached       = "weir.ledger.v1.threshold_reached"
	TypeQuotaExhausted         = "weir.ledger.v1.quota_exhausted"
	TypeQuotaRestored          = "weir.ledger.v1.quota_restored"
	TypeOverageBegun           = "weir.ledger.v1.overage_begun"
	TypeTierChanged            = "weir.ledger.v1.tier_changed"
	TypeGrantExpiring          = "weir.ledger.v1.grant_expiring"
	TypeGrantExpired           = "weir.ledger.v1.grant_expired"
	TypePeriodClosed           = "weir.ledger.v1.period_closed"
	TypeAdjusted               = "weir.ledger.v1.adjusted"
	TypeStatementReady         = "weir.ledger.v1.statement_ready"
	TypeBudgetThresholdReached = "weir.ledger.v1.budget_threshold_reached"
	TypeBudgetExhausted        = "weir.ledger.v1.budget_exhausted"
	TypeBudgetRestored         = "weir.ledger.v1.budget_restored"
	TypeErrorGroupCreated      = "weir.grouping.v1.error_group_created"
	TypeErrorGroupResolved     = "weir.grouping.v1.error_group_resolved"
	TypeErrorGroupReopened     = "weir.grouping.v1.error_group_reopened"
	TypeErrorGroupRegressed    = "weir.grouping.v1.error_group_regressed"
	TypeErrorGroupIgnored      = "weir.grouping.v1.error_group_ignored"
	TypeErrorGroupUnignored    = "weir.grouping.v1.error_group_unignored"
	TypeErrorGroupAssigned     = "weir.grouping.v1.error_group_assigned"
	TypeErrorGroupSpiking      = "weir.grouping.v1.error_group_spiking"
	TypeErrorGroupQuiet        = "weir.grouping.v1.error_group_quiet"
	TypeErrorGroupMerged       = "weir.grouping.v1.error_group_merged"
	TypeErrorGroupUnmerged     = "weir.grouping.v1.error_group_unmerged"
	TypeErrorGroupSplit        = "weir.grouping.v1.error_group_split"
	TypeErrorGroupMentioned    = "weir.grouping.v1.error_group_mentioned"
	TypeErrorAlertFired        = "weir.grouping.v1.error_alert_fired"
	TypeErrorsChangeReported   = "weir.grouping.v1.change_reported"
	TypeKeyUsed                = "weir.ingest.v1.key_used"
	TypeKeyExposed             = "weir.ingest.v1.key_exposed"
	TypeErased                 = "weir.erasures.v1.erased"
	TypeRequestsCounted        = "weir.outcomes.v1.requests_counted"
	TypeQuotaRefused           = "weir.outcomes.v1.quota_refused"
	TypeSearchAlertFired       = "weir.alerts.v1.search_alert_fired"
	TypeSearchAlertResolved    = "weir.alerts.v1.search_alert_resolved"
	TypeSearchAlertUnevaluated = "weir.alerts.v1.search_alert_unevaluated"
	TypeIngestChangeReported   = "weir.alerts.v1.change_reported"
	TypeRulesChanged           = "weir.rules.v1.changed"
	TypeRulesCompared          = "weir.rules.v1.compared"
)

// Attributes are the CloudEvents attributes of an event with JSON data.
type Attributes struct {
	ID           string
	Type         string
	Source       string // the publishing module: "weir/tenants"
	Time         time.Time
	Organization string // empty: a fact of no organization
	Traceparent  string
}

// Headers returns the wire form of the attributes;
// content-type is application/json.
func (a Attributes) Headers() map[string]string {
	headers := map[string]string{
		HeaderSpecVersion: SpecVersion,
		HeaderID:          a.ID,
		HeaderType:        a.Type,
		HeaderSource:      a.Source,
		HeaderTime:        a.Time.UTC().Format(time.RFC3339Nano),
		HeaderContentType: "application/json",
	}
	setIfAny(headers, HeaderOrganization, a.Organization)
	setIfAny(headers, HeaderTraceparent, a.Traceparent)
	return headers
}

// ParseAttributes reads the attributes back; header returns "" for
// a missing name.
func ParseAttributes(header func(name string) string) (Attributes, error) {
	at, err := time.Parse(time.RFC3339Nano, header(HeaderTime))
	if err != nil {
		return Attributes{}, fmt.Errorf("cannot parse header %s=%q: %w", HeaderTime, header(HeaderTime), err)
	}
	return Attributes{
		ID:           header(HeaderID),
		Type:         header(HeaderType),
		Source:       header(HeaderSource),
		Time:         at.UTC(),
		Organization: header(HeaderOrganization),
		Traceparent:  header(HeaderTraceparent),
	}, nil
}

func setIfAny(headers map[string]string, name, value string) {
	if value != "" {
		headers[name] = value
	}
}

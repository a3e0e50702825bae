package contract

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/weirlog/weir/shared/contract/tier"
)

// States of an account.
const (
	AccountActive    = "active"
	AccountExhausted = "exhausted"
	AccountSuspended = "suspended"
)

// Account is the state of one organization's quota on weir.accounts.v1,
// keyed by organization.
type Account struct {
	Organization      string          `json:"organization"`
	Tier              string          `json:"tier"`
	RequestsPerMinute int             `json:"requests_per_minute"`
	AnchorDay         int             `json:"anchor_day"`                 // 1..31: the day of the month on which periods start
	PeriodStart       time.Time       `json:"period_start"`               // inclusive
	PeriodEnd         time.Time       `json:"period_end"`                 // exclusive
	Quota             int64           `json:"quota"`                      // bytes granted for this period
	NextQuota         int64           `json:"next_quota"`                 // bytes that a following period grants
	OverageCap        int64           `json:"overage_cap,omitempty"`      // accepted bytes beyond Quota
	NextOverageCap    int64           `json:"next_overage_cap,omitempty"` // bytes beyond NextQuota
	Used              int64           `json:"used"`                       // bytes charged in this period
	State             string          `json:"state"`
	Raises            int64           `json:"raises,omitempty"`         // raises of Quota and OverageCap in the period; 0: not counted
	RetentionDays     int             `json:"retention_days,omitempty"` // see Retention
	Counted           Positions       `json:"counted"`                  // all below these offsets of weir.logs.v1 is in Used
	Version           int64           `json:"version"`                  // grows with every change; an older one is ignored
	Budgets           []AccountBudget `json:"budgets,omitempty"`        // of projects and keys
}

// Retention returns for how many days new entries are kept. Accounts
// without it have their tier's default.
func (a Account) Retention() int { return cmp.Or(a.RetentionDays, tier.RetentionDays(a.Tier)) }

// An AccountBudget limits the bytes of one project or API key per
// period; one of Project and APIKey is empty. Each period starts unused.
type AccountBudget struct {
	Project   string `json:"project,omitempty"`
	APIKey    string `json:"api_key,omitempty"`   // its id
	Bytes     int64  `json:"bytes"`               // of each period
	Used      int64  `json:"used"`                // charged bytes accepted in this period
	Exhausted bool   `json:"exhausted,omitempty"` // these Bytes allow nothing more in this period
	Since     int64  `json:"since,omitempty"`     // the decision that set or raised it: refusals before it do not count
}

// AccountsCountedKey is the key of the marker on weir.accounts.v1. No
// organization has this id.
const AccountsCountedKey = "counted"

// AccountsCounted is the marker after every round of Accounts: the
// accounts before it include all below Counted, even if that changed
// none (a replay, a parked record).
type AccountsCounted struct {
	Counted Positions `json:"counted"`
}

// Positions maps a partition of weir.logs.v1 to its next offset to count.
type Positions map[int]int64

// Kinds of credentials.
const (
	CredentialAPIKey       = "api_key"
	CredentialServiceToken = "service_token"
	CredentialSession      = "session" // of a person signed in to the console
)

// States of a credential.
const (
	CredentialActive  = "active"
	CredentialRevoked = "revoked"
)

// What an API key may read; every key may write. Without a scope it may
// read its whole organization.
const (
	AccessFull    = "full"
	AccessProject = "project" // only its own project
	AccessWrite   = "write"   // nothing
)

// Credential is the state of one credential on weir.credentials.v1,
// keyed by CredentialKey of its secret. A revoked credential stays, so
// that its holder gets the reason; a tombstone makes it unknown.
type Credential struct {
	Kind          string     `json:"kind"`
	ID            string     `json:"id"`
	Organization  string     `json:"organization"` // empty: of the whole installation
	Project       string     `json:"project,omitempty"`
	Environment   string     `json:"environment,omitempty"`
	Member        string     `json:"member,omitempty"` // the session's member
	Scopes        []string   `json:"scopes,omitempty"` // of a session: the member's role, as in "role:owner"
	State         string     `json:"state"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	RatePerMinute int        `json:"rate_per_minute,omitempty"` // 0: no own limit
	Version       int64      `json:"version"`                   // grows with every change; an older one is ignored

	Access  string   `json:"access,omitempty"`  // what an API key may read; absent: full
	Lenient bool     `json:"lenient,omitempty"` // of an API key: its entries are normalized
	Origins []string `json:"origins,omitempty"` // of the web pages that use an API key; absent: programs do
	Name    string   `json:"name,omitempty"`    // of a session: the member's when it was started; absent: unknown

	// Of a session: when its member last authenticated, and from when
	// on use renews it. Absent: unknown, and never.
	AuthenticatedAt *time.Time `json:"authenticated_at,omitempty"`
	RenewAt         *time.Time `json:"renew_at,omitempty"`
}

// CredentialsComparedKey is the key of the marker on weir.credentials.v1.
// It never equals a CredentialKey or a HolderKey.
const CredentialsComparedKey = "compared"

// CredentialsCompared is the marker after tenants has compared the topic
// with its tables: what the log had lost precedes it.
type CredentialsCompared struct {
	Start string `json:"start"` // of the process that compared; empty: it has no name
}

// IngestRules are the rules of one project on weir.rules.v1, keyed by
// project: what is done to its entries before they are kept.
type IngestRules struct {
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Version      int64  `json:"version"` // grows with every change; an older one is ignored
	Text         string `json:"text"`    // one rule a line; empty: there are none

	// Compared: the table has this version, even if the log had a newer one, as
	// after a restore. No version is ignored then.
	Compared bool `json:"compared,omitempty"`
}

// RulesComparedKey is the key of the marker on weir.rules.v1. No project
// has this id.
const RulesComparedKey = "compared"

// RulesCompared is the marker after ingest has compared the topic with
// its table: what the log had lost precedes it.
type RulesCompared struct{}

// CredentialKey returns a secret's key on weir.credentials.v1: its
// SHA-256 in lower-case hexadecimal. A secret has 192 random bits, so a
// slow hash would gain nothing.
func CredentialKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// OrganizationCreated is a fact on weir.tenants.v1.
type OrganizationCreated struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	Tier         string    `json:"tier"`
	CreatedAt    time.Time `json:"created_at"`
}

// ProjectCreated is a fact on weir.tenants.v1.
type ProjectCreated struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

// OrganizationRenamed is a fact on weir.tenants.v1.
type OrganizationRenamed struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	RenamedAt    time.Time `json:"renamed_at"`
}

// ProjectRenamed is a fact on weir.tenants.v1.
type ProjectRenamed struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Name         string    `json:"name"`
	RenamedAt    time.Time `json:"renamed_at"`
}

// APIKeyIssued is a fact on weir.tenants.v1. It never contains the key.
type APIKeyIssued struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Environment  string    `json:"environment"`
	Name         string    `json:"name"`
	IssuedAt     time.Time `json:"issued_at"`
}

// APIKeyChanged is a fact on weir.tenants.v1: a key may have another name.
type APIKeyChanged struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"`
	Name         string    `json:"name"`
	ChangedAt    time.Time `json:"changed_at"`
}

// APIKeyRevoked is a fact on weir.tenants.v1.
type APIKeyRevoked struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Reason       string    `json:"reason"`
	RevokedAt    time.Time `json:"revoked_at"`
}

// DeletionRequested is a fact on weir.tenants.v1: an organization, or only
// its Project, is refused and hidden from now on. Nothing is erased yet.
type DeletionRequested struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	RequestedAt  time.Time `json:"requested_at"`
	BeginsAt     time.Time `json:"begins_at"` // it can be cancelled until then
}

// DeletionCancelled is a fact on weir.tenants.v1: it takes
// a DeletionRequested back.
type DeletionCancelled struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	CancelledAt  time.Time `json:"cancelled_at"`
}

// DeletionBegun is a fact on weir.tenants.v1: every module erases its
// data, accepts nothing more, and publishes Erased. It is final, and
// stays on the topic after the other facts of the organization or
// project, until the deletion is forgotten.
type DeletionBegun struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	BegunAt      time.Time `json:"begun_at"`
	GoneBy       time.Time `json:"gone_by"`
}

// MemberAdded is a fact on weir.tenants.v1. It has no address.
type MemberAdded struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"` // the id
	Name         string    `json:"name"`
	Role         string    `json:"role"`
	AddedAt      time.Time `json:"added_at"`
}

// MemberRoleChanged is a fact on weir.tenants.v1.
type MemberRoleChanged struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	Role         string    `json:"role"`
	ChangedAt    time.Time `json:"changed_at"`
}

// MemberRemoved is a fact on weir.tenants.v1: what a member alone could
// see is to be removed.
type MemberRemoved struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	RemovedAt    time.Time `json:"removed_at"`
}

// WebhookChanged is a fact on weir.tenants.v1: a webhook was created or changed,
// or switched off or on. It has no address, which may hold a secret.
type WebhookChanged struct {
	Organization string    `json:"organization"`
	Webhook      string    `json:"webhook"` // the id
	Host         string    `json:"host"`    // of its address
	Events       []string  `json:"events"`  // names of the facts that it asks for
	On           bool      `json:"on"`      // facts are sent to it
	ChangedAt    time.Time `json:"changed_at"`
}

// WebhookDeleted is a fact on weir.tenants.v1: nothing is sent to it any more.
type WebhookDeleted struct {
	Organization string    `json:"organization"`
	Webhook      string    `json:"webhook"`
	DeletedAt    time.Time `json:"deleted_at"`
}

// DeletionFinished is a fact on weir.tenants.v1: every module has
// erased its data. Nothing of it need be hidden or refused any more.
type DeletionFinished struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	FinishedAt   time.Time `json:"finished_at"`
}

// Erased is a fact on weir.erasures.v1, keyed by what was deleted and
// the module. It may be published again.
type Erased struct {
	Organization string           `json:"organization"`
	Project      string           `json:"project,omitempty"`
	Module       string           `json:"module"`
	Removed      map[string]int64 `json:"removed"` // rows by table
	ErasedAt     time.Time        `json:"erased_at"`
}

// ErasingModules lists the modules that publish Erased.
func ErasingModules() []string { return []string{"grouping", "ingest", "ledger", "tenants"} }

// Holder is the state of all credentials of an organization or project on
// weir.credentials.v1, keyed by HolderKey. CredentialRevoked refuses each of
// them, whatever its own state. A tombstone follows the end of a deletion.
type Holder struct {
	Organization string `json:"organization"`
	Project      string `json:"project,omitempty"`
	State        string `json:"state"`
	Version      int64  `json:"version"` // grows with every change; an older one is ignored
}

// HolderKey returns the key of a Holder. It never equals a CredentialKey.
func HolderKey(organization, project string) string {
	if project != "" {
		return "project/" + project
	}
	return "organization/" + organization
}

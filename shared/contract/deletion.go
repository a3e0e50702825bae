package contract

import "time"

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

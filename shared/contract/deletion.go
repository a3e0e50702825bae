package contract

import "time"

// DeletionRequested is a fact on weir.tenants.v1: an organization, or only a
// Project of it, is refused and hidden from now on. Nothing is erased yet.
type DeletionRequested struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	RequestedAt  time.Time `json:"requested_at"`
	BeginsAt     time.Time `json:"begins_at"` // until then it can be cancelled
}

// DeletionCancelled is a fact on weir.tenants.v1: all is as
// before the DeletionRequested.
type DeletionCancelled struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	CancelledAt  time.Time `json:"cancelled_at"`
}

// DeletionBegun is a fact on weir.tenants.v1: every module erases what it has,
// accepts nothing more, and publishes Erased. It is final, and stays on the
// topic when the rest of the organization or project is gone, until that is
// forgotten.
type DeletionBegun struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	BegunAt      time.Time `json:"begun_at"`
	GoneBy       time.Time `json:"gone_by"`
}

// DeletionFinished is a fact on weir.tenants.v1: every module has erased what it
// had. Nobody has to hide or refuse anything of it any more.
type DeletionFinished struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	FinishedAt   time.Time `json:"finished_at"`
}

// Erased is a fact on weir.erasures.v1; the record's key is what was deleted
// and the module. It may be published again.
type Erased struct {
	Organization string           `json:"organization"`
	Project      string           `json:"project,omitempty"`
	Module       string           `json:"module"`
	Removed      map[string]int64 `json:"removed"` // rows by table
	ErasedAt     time.Time        `json:"erased_at"`
}

// ErasingModules lists the modules that publish Erased.
func ErasingModules() []string { return []string{"grouping", "ingest", "ledger", "tenants"} }

// Holder is the state of all credentials of an organization, or of a project,
// on weir.credentials.v1; the record's key is HolderKey. CredentialRevoked
// refuses each of them, whatever its own state. When a deletion
// has finished, a tombstone follows.
type Holder struct {
	Organization string `json:"organization"`
	Project      string `json:"project,omitempty"`
	State        string `json:"state"`
	Version      int64  `json:"version"` // grows with every change; an older one is ignored
}

// HolderKey is the key of a Holder. No CredentialKey looks like it.
func HolderKey(organization, project string) string {
	if project != "" {
		return "project/" + project
	}
	return "organization/" + organization
}

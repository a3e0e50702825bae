package tenants

import (
	"fmt"
	"slices"
	"time"
)

// An Access is what an API key may read. Every key sends logs, for its own project.
type Access string

// The accesses.
const (
	FullAccess    Access = "full"    // reads the logs and errors of the whole organization
	ProjectAccess Access = "project" // reads those of its own project alone
	WriteAccess   Access = "write"   // reads nothing
)

// Accesses lists all of them.
func Accesses() []Access { return []Access{FullAccess, ProjectAccess, WriteAccess} }

// OrFull is the access, or full access if empty: early keys had no other.
func (a Access) OrFull() Access {
	if a == "" {
		return FullAccess
	}
	return a
}

// unlessFull is the inverse of OrFull: full
// access is stored and published as empty.
func (a Access) unlessFull() Access {
	if a == FullAccess {
		return ""
	}
	return a
}

// check returns the fault of an unknown access.
func (a Access) check() Invalid {
	if slices.Contains(Accesses(), a) {
		return nil
	}
	return Invalid{{"access", fmt.Sprintf("access is %q.", string(a)), oneOf(Accesses())}}
}

// APIKeyAccessChanged changes what an API key may read.
type APIKeyAccessChanged struct {
	APIKey string    `json:"api_key"`
	Access Access    `json:"access"`
	At     time.Time `json:"at"`
}

// EventName implements Event.
func (APIKeyAccessChanged) EventName() string { return "tenants.v1.api_key_access_changed" }

func (e APIKeyAccessChanged) audit() auditForm {
	return auditForm{"api_key.access_changed", e.At, &APIKey{}}
}

// Publication implements Event.
func (APIKeyAccessChanged) Publication() Publication { return PublishedCredential }

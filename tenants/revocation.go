package tenants

import (
	"strings"
	"time"
)

// A State is whether a credential works.
type State string

// The states. Revoked is final, and stronger than expired.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// A Revocation ends a credential. Its zero value is none.
type Revocation struct {
	At     time.Time
	Reason string // for people; may be empty
}

// Revoke is the command to end a credential at once, forever.
type Revoke struct {
	Reason string // for people; optional, as an emergency must not fail for lack of it
	At     time.Time
}

// Check returns Invalid with every fault of the command, or nil.
func (r Revoke) Check() error {
	return checkText("reason", r.Reason, maxReason).orNil()
}

func (r Revoke) reason() string {
	return strings.TrimSpace(r.Reason)
}

func (r Revocation) state() State {
	if r.At.IsZero() {
		return Active
	}
	return Revoked
}

package tenants

import (
	"fmt"
	"regexp"
	"time"
)

// An AuditFilter selects lines of an audit. Empty fields match all.
type AuditFilter struct {
	Organization string // or Installation; required
	Actor        string // id
	Action       string
	Target       string    // id
	From, To     time.Time // in [From, To)
}

var actionForm = regexp.MustCompile(`^[a-z_]{1,40}\.[a-z_]{1,40}$`)

// Check returns Invalid for a filter that no line can match, or nil.
func (f AuditFilter) Check() error {
	faults := append(checkID("actor", f.Actor), checkID("target", f.Target)...)
	if f.Action != "" && !actionForm.MatchString(f.Action) {
		faults = append(faults, Fault{"action", fmt.Sprintf("action is %q.", f.Action), "Use an action such as api_key.revoked."})
	}
	if !f.To.IsZero() && !f.To.After(f.From) {
		faults = append(faults, Fault{"to", "The end is not after the beginning.", "Use a later one, or leave it out."})
	}
	return faults.orNil()
}

// checkID returns the fault of an optional id.
func checkID(field, id string) Invalid {
	if id == "" || IsID(id) {
		return nil
	}
	return Invalid{{field, fmt.Sprintf("%s is %q.", field, id), "Use the id of the " + field + ", such as key_0190a1b2."}}
}

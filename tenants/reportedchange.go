package tenants

import (
	"fmt"
	"net/netip"
	"time"
)

// ChangeReported says that somebody changed what another module keeps.
type ChangeReported struct {
	Project    string            `json:"project"`
	Action     string            `json:"action"` // of the audit
	TargetKind string            `json:"target_kind"`
	Target     string            `json:"target"`
	TargetName string            `json:"target_name,omitempty"`
	Before     map[string]string `json:"before,omitempty"`
	After      map[string]string `json:"after,omitempty"`
	At         time.Time         `json:"at"`
}

func (e ChangeReported) meta() eventMeta {
	return eventMeta{"tenants.v1.change_reported", Unpublished, e.Action, e.At, &ReportedChange{}, kept}
}

// Check returns why the audit can't have a line about it, or nil.
func (e ChangeReported) Check() error {
	if !actionForm.MatchString(e.Action) || !IsID(e.Project) || !IsID(e.Target) || e.TargetKind == "" || e.At.IsZero() {
		return fmt.Errorf("%q of %q in project %q at %s is no change for the audit", e.Action, e.Target, e.Project, e.At)
	}
	return nil
}

// A Report is a change, by whom and by which request. Its
// id is the same each time it is sent.
type Report struct {
	ID, Organization, Actor, Request string
	Address                          netip.Addr
	Client                           string
	Change                           ChangeReported
}

// A ReportedChange is what another module has reported, once: the audit shows it, and nothing else does.
type ReportedChange struct{ ChangeReported }

// Report decides to keep a change, unless it is known.
func (c ReportedChange) Report(e ChangeReported) ([]Event, error) {
	if c.Action != "" {
		return nil, nil
	}
	return []Event{e}, e.Check()
}

// Apply applies the event.
func (c *ReportedChange) Apply(event Event) {
	e, ok := event.(ChangeReported)
	if !ok {
		panic(fmt.Sprintf("BUG: a reported change does not know %T", event))
	}
	c.ChangeReported = e
}

func (c *ReportedChange) audited() (Target, Fields) {
	return Target{c.TargetKind, c.Target, c.TargetName}, texts(c.After)
}

func texts(of map[string]string) Fields {
	fields := Fields{}
	for name, text := range of {
		fields[name] = text
	}
	return fields
}

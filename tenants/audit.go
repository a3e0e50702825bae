package tenants

import "time"

// A Subject is a thing whose changes are audited: a state, and its fields in
// the audit, without secrets and hashes.
type Subject interface {
	Apply(event Event)
	audited() (Target, Fields)
}

// A Target is what a change is about.
type Target struct {
	Kind string // "api_key"
	ID   string
	Name string // at the time; may be empty
}

// A Change is how an event reads in the audit: one thing before and after it.
type Change struct {
	Action string // "api_key.revoked"
	At     time.Time
	Target Target
	Before Fields // nil where there was nothing
	After  Fields
}

// auditForm is how an event reads. Actions are data, like names of events.
type auditForm struct {
	action  string
	at      time.Time
	subject Subject // nothing yet
}

// Fold is the subject of a stream after its first events, of
// which there is one at least.
func Fold(history ...Event) Subject {
	subject := history[0].audit().subject
	for _, event := range history {
		subject.Apply(event)
	}
	return subject
}

// Audit applies an event to a subject and returns the change. A new subject is nil.
func Audit(subject Subject, event Event) (Subject, Change) {
	form := event.audit()
	change := Change{Action: form.action, At: form.at}
	if subject == nil {
		subject = form.subject
	} else if target, fields := subject.audited(); target.ID != "" {
		change.Before = fields.nonZero()
	}
	subject.Apply(event)
	var after Fields
	change.Target, after = subject.audited()
	change.After = after.nonZero()
	return subject, change
}

// ActorName is what a subject is called where it decides something
// itself: a member with the e-mail address.
func ActorName(subject Subject) string {
	if subject == nil {
		return ""
	}
	target, fields := subject.audited()
	if email, _ := fields["email"].(string); email != "" {
		return target.Name + " (" + email + ")"
	}
	return target.Name
}

package tenants

import "time"

// A Subject is an entity whose changes are audited. Its
// fields in the audit have neither secrets nor hashes.
type Subject interface {
	Apply(event Event)
	audited() (Target, Fields)
}

// A Target is the entity that a change is about.
type Target struct {
	Kind string // "api_key"
	ID   string
	Name string // at the time; may be empty
}

// A Change is an event as the audit shows it: one entity before and after.
type Change struct {
	Action string // "api_key.revoked"
	At     time.Time
	Target Target
	Before Fields // nil where there was nothing
	After  Fields
}

// auditForm is how the audit shows an event.
// Actions are stored, like names of events.
type auditForm struct {
	action  string
	at      time.Time
	subject Subject // its zero value
}

// Fold applies a stream's events, at least one, to a new subject.
func Fold(history ...Event) Subject {
	subject := history[0].audit().subject
	for _, event := range history {
		subject.Apply(event)
	}
	return subject
}

// Audit applies an event to a subject, nil
// for a new one, and returns the change.
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

// ActorName is the name of a subject as an
// actor; a member's has the e-mail address.
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

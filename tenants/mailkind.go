package tenants

import (
	"fmt"
	"slices"
	"time"
)

// A MailKind is one kind of mail about the account. Owners and
// billing members get all that they have not unsubscribed from.
type MailKind string

// The kinds of mail. They are stored in events and part of links.
const (
	ThresholdMail MailKind = "threshold" // a part of the quota or of a budget is used
	ExhaustedMail MailKind = "exhausted" // a quota or budget is used up, or available again
	StatementMail MailKind = "statement" // a period has its statement
)

// MailKinds lists all of them.
func MailKinds() []MailKind { return []MailKind{ThresholdMail, ExhaustedMail, StatementMail} }

// ChooseMails is the command to get some kinds of mail and no others.
type ChooseMails struct {
	Wanted []MailKind
	At     time.Time
}

// MemberMailsChosen lists the kinds of mail that a member does not get.
type MemberMailsChosen struct {
	Member  string     `json:"member"`
	Without []MailKind `json:"without"` // in the order of MailKinds
	At      time.Time  `json:"at"`
}

// EventName implements Event.
func (MemberMailsChosen) EventName() string { return "tenants.v1.member_mails_chosen" }

func (e MemberMailsChosen) audit() auditForm {
	return auditForm{"member.mails_chosen", e.At, &Member{}}
}

// Publication implements Event.
func (MemberMailsChosen) Publication() Publication { return Unpublished }

// Check returns Invalid with every fault of the command, or nil.
func (c ChooseMails) Check() error {
	var faults Invalid
	for _, kind := range c.Wanted {
		if !slices.Contains(MailKinds(), kind) {
			faults = append(faults, Fault{"mails", fmt.Sprintf("mails has %q.", kind), oneOf(MailKinds())})
		}
	}
	return faults.orNil()
}

// ChooseMails decides which mail the member gets. It
// is idempotent. ErrNotFound for a former member.
func (m Member) ChooseMails(cmd ChooseMails) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if !m.exists() {
		return nil, ErrNotFound
	}
	without := slices.DeleteFunc(MailKinds(), func(kind MailKind) bool { return slices.Contains(cmd.Wanted, kind) })
	if slices.Equal(without, m.WithoutMails) {
		return nil, nil
	}
	return []Event{MemberMailsChosen{Member: m.ID, Without: without, At: cmd.At}}, nil
}

// Unsubscribe decides that the member no longer
// gets one kind of mail; otherwise as ChooseMails.
func (m Member) Unsubscribe(kind MailKind, at time.Time) ([]Event, error) {
	wanted := slices.DeleteFunc(MailKinds(), func(each MailKind) bool { return each == kind || !m.Receives(each) })
	return m.ChooseMails(ChooseMails{Wanted: wanted, At: at})
}

// Receives reports whether the member gets a kind of mail.
func (m Member) Receives(kind MailKind) bool { return !slices.Contains(m.WithoutMails, kind) }

// mailNames are kinds of mail as the audit shows them.
func mailNames(kinds []MailKind) (names []string) {
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return names
}

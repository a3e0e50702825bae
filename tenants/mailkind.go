package tenants

import (
	"fmt"
	"slices"
	"time"
)

// A MailKind is one kind of mail about the account. Owners and
// billing members get all that they do not go without.
type MailKind string

// The kinds of mail. Their names are data in events and links.
const (
	ThresholdMail MailKind = "threshold" // a part of the quota or of a budget is used
	ExhaustedMail MailKind = "exhausted" // nothing is left of one, or something is again
	StatementMail MailKind = "statement" // a period has its statement
)

// MailKinds lists all of them.
func MailKinds() []MailKind { return []MailKind{ThresholdMail, ExhaustedMail, StatementMail} }

// ChooseMails asks for some kinds of mail, and no others.
type ChooseMails struct {
	Wanted []MailKind
	At     time.Time
}

// MemberMailsChosen says which kinds of mail a member goes without.
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

// ChooseMails decides which mail the member gets; again, it
// decides nothing. ErrNotFound for a former member.
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

// Unsubscribe decides that the member gets one kind of mail no
// more; otherwise it is as ChooseMails.
func (m Member) Unsubscribe(kind MailKind, at time.Time) ([]Event, error) {
	wanted := slices.DeleteFunc(MailKinds(), func(each MailKind) bool { return each == kind || !m.Receives(each) })
	return m.ChooseMails(ChooseMails{Wanted: wanted, At: at})
}

// Gets reports whether the member has not gone without a kind of mail.
func (m Member) Receives(kind MailKind) bool { return !slices.Contains(m.WithoutMails, kind) }

// mailNames are kinds of mail as the audit has them.
func mailNames(kinds []MailKind) (names []string) {
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return names
}

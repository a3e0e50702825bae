package tenants_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

// A member gets all mail about the account until
// they choose; the same choice again has no event.
func TestMailDecisions(t *testing.T) {
	choose := func(wanted ...tenants.MailKind) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.ChooseMails(tenants.ChooseMails{Wanted: wanted, At: later})
		}
	}
	end := func(kind tenants.MailKind) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) { return m.Unsubscribe(kind, later) }
	}
	without := func(kinds ...tenants.MailKind) tenants.Event {
		return tenants.MemberMailsChosen{Member: "mem_1", Without: kinds, At: later}
	}
	const near, out, statement = tenants.ThresholdMail, tenants.ExhaustedMail, tenants.StatementMail
	added, removed := memberAdded(), tenants.MemberRemoved{Member: "mem_1", At: later}
	decide(t, map[string]decision[tenants.Member]{
		"all, as before":         {given: []tenants.Event{added}, when: choose(statement, near, out)},
		"some":                   {given: []tenants.Event{added}, when: choose(out), then: []tenants.Event{without(near, statement)}},
		"none":                   {given: []tenants.Event{added}, when: choose(), then: []tenants.Event{without(near, out, statement)}},
		"all again":              {given: []tenants.Event{added, without(near)}, when: choose(tenants.MailKinds()...), then: []tenants.Event{without([]tenants.MailKind{}...)}},
		"a kind that is none":    {given: []tenants.Event{added}, when: choose("news"), faults: []string{"mails"}},
		"no member any more":     {given: []tenants.Event{added, removed}, when: choose(), fails: tenants.ErrNotFound},
		"one ends":               {given: []tenants.Event{added, without(statement)}, when: end(near), then: []tenants.Event{without(near, statement)}},
		"one ends twice":         {given: []tenants.Event{added, without(near)}, when: end(near)},
		"one of a former member": {given: []tenants.Event{added, removed}, when: end(near), fails: tenants.ErrNotFound},
		"one that is none":       {given: []tenants.Event{added}, when: end("news")},
	})
}

// A removed member's choice is removed, too.
func TestMailsOfAFormerMember(t *testing.T) {
	var m tenants.Member
	m.Apply(memberAdded())
	m.Apply(tenants.MemberMailsChosen{Member: "mem_1", Without: tenants.MailKinds(), At: later})
	if m.Receives(tenants.StatementMail) {
		t.Error("the choice has no effect")
	}
	m.Apply(tenants.MemberRemoved{Member: "mem_1", At: later.Add(time.Hour)})
	if len(m.WithoutMails) > 0 {
		t.Errorf("a former member goes without %q", m.WithoutMails)
	}
}

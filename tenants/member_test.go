package tenants_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func memberAdded() tenants.MemberAdded {
	return tenants.MemberAdded{
		Member: "mem_1", Organization: "org_1", Email: "ada@example.com", Name: "Ada", Role: tenants.Owner,
		PasswordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$a2V5", At: noon,
	}
}

func addMember() tenants.AddMember {
	return tenants.AddMember{
		ID: "mem_1", Organization: "org_1", Email: " Ada@Example.com ", Name: " Ada ", Role: tenants.Owner,
		Password: "correct horse", PasswordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$a2V5", At: noon,
	}
}

// A member is added once, with one spelling of the
// address; a repeated request changes nothing.
func TestMemberAddDecisions(t *testing.T) {
	add := func(change func(*tenants.AddMember)) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			cmd := addMember()
			change(&cmd)
			return m.Add(cmd)
		}
	}
	same := func(*tenants.AddMember) {}
	given := []tenants.Event{memberAdded()}
	password := func(p tenants.Password) func(*tenants.AddMember) {
		return func(c *tenants.AddMember) { c.Password = p }
	}
	decide(t, map[string]decision[tenants.Member]{
		"add":                        {when: add(same), then: []tenants.Event{memberAdded()}},
		"add again":                  {given: given, when: add(same)},
		"add again, in another role": {given: given, when: add(func(c *tenants.AddMember) { c.Role = tenants.Viewer }), fails: tenants.ErrReused},
		"add again, as another":      {given: given, when: add(func(c *tenants.AddMember) { c.Email = "bob@example.com" }), fails: tenants.ErrReused},
		"the shortest password":      {when: add(password(tenants.Password(strings.Repeat("ä", 12)))), then: []tenants.Event{memberAdded()}},
		"a password too short":       {when: add(password("ääääääääääa")), faults: []string{"password"}},
		"the longest password":       {when: add(password(tenants.Password(strings.Repeat("ä", 128)))), then: []tenants.Event{memberAdded()}},
		"a password too long":        {when: add(password(tenants.Password(strings.Repeat("a", 129)))), faults: []string{"password"}},
		"no such role":               {when: add(func(c *tenants.AddMember) { c.Role = "Owner" }), faults: []string{"role"}},
		"every fault at once": {
			when:   add(func(c *tenants.AddMember) { *c = tenants.AddMember{At: noon} }),
			faults: []string{"organization", "email", "name", "role", "password"},
		},
	})
}

// A role is changed, and a member removed, by roles
// that manage both; the last owner stays one.
func TestMemberManageDecisions(t *testing.T) {
	role := func(by, to tenants.Role, owners int) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.ChangeRole(tenants.ChangeRole{By: by, Role: to, OtherOwners: owners, At: later})
		}
	}
	remove := func(by tenants.Role, owners int) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.Remove(tenants.RemoveMember{By: by, OtherOwners: owners, At: later})
		}
	}
	viewer := memberAdded()
	viewer.Role = tenants.Viewer
	owner, other := []tenants.Event{memberAdded()}, []tenants.Event{viewer}
	changed := func(to tenants.Role) []tenants.Event {
		return []tenants.Event{tenants.MemberRoleChanged{Member: "mem_1", Role: to, At: later}}
	}
	removed := tenants.MemberRemoved{Member: "mem_1", At: later}
	decide(t, map[string]decision[tenants.Member]{
		"an owner makes an owner":             {given: other, when: role(tenants.Owner, tenants.Owner, 1), then: changed(tenants.Owner)},
		"an admin makes an owner":             {given: other, when: role(tenants.Admin, tenants.Owner, 1), fails: tenants.ErrForbidden},
		"an admin makes an admin":             {given: other, when: role(tenants.Admin, tenants.Admin, 1), then: changed(tenants.Admin)},
		"an admin demotes an owner":           {given: owner, when: role(tenants.Admin, tenants.Viewer, 1), fails: tenants.ErrForbidden},
		"an owner demotes an owner":           {given: owner, when: role(tenants.Owner, tenants.Viewer, 1), then: changed(tenants.Viewer)},
		"the last owner steps down":           {given: owner, when: role(tenants.Owner, tenants.Admin, 0), fails: tenants.ErrLastOwner},
		"the last owner stays owner":          {given: owner, when: role(tenants.Owner, tenants.Owner, 0)},
		"a developer makes a viewer an admin": {given: other, when: role(tenants.Developer, tenants.Admin, 1), fails: tenants.ErrForbidden},
		"the same role":                       {given: other, when: role(tenants.Admin, tenants.Viewer, 1)},
		"no such role":                        {given: other, when: role(tenants.Owner, "root", 1), faults: []string{"role"}},
		"the role of nobody":                  {when: role(tenants.Owner, tenants.Viewer, 1), fails: tenants.ErrNotFound},
		"the role of one who is gone":         {given: append(other[:1:1], removed), when: role(tenants.Owner, tenants.Admin, 1), fails: tenants.ErrNotFound},
		"an admin removes a viewer":           {given: other, when: remove(tenants.Admin, 1), then: []tenants.Event{removed}},
		"removed again":                       {given: append(other[:1:1], removed), when: remove(tenants.Admin, 1)},
		"an admin removes an owner":           {given: owner, when: remove(tenants.Admin, 1), fails: tenants.ErrForbidden},
		"an owner removes an owner":           {given: owner, when: remove(tenants.Owner, 1), then: []tenants.Event{removed}},
		"the last owner goes":                 {given: owner, when: remove(tenants.Owner, 0), fails: tenants.ErrLastOwner},
		"a viewer removes a viewer":           {given: other, when: remove(tenants.Viewer, 1), fails: tenants.ErrForbidden},
		"nobody is removed":                   {when: remove(tenants.Owner, 1), fails: tenants.ErrNotFound},
		"added again, in the role of before": {
			given: append(owner[:1:1], changed(tenants.Viewer)...),
			when:  func(m tenants.Member) ([]tenants.Event, error) { return m.Add(addMember()) },
		},
	})
}

// An address has one form, and nothing that could be
// mistaken for another address or inject something.
func TestEmails(t *testing.T) {
	for email, fine := range map[string]bool{
		"ada@example.com": true, "Ada.B+tag@sub.Example.co.uk": true, " o'neil@example.com\n": true,
		"": false, "ada": false, "ada@": false, "@example.com": false, "ada@localhost": false, "a@b@example.com": false,
		"ada@example..com": false, ".ada@example.com": false, "ada @example.com": false, "ada@exam\x00ple.com": false,
		"ada@example.com\r\nBcc: x@y.z": false, "<ada@example.com>": false, "ad\u212a@example.com": false, "adä@example.com": false,
		strings.Repeat("a", 64) + "@example.com": true,
		strings.Repeat("a", 65) + "@example.com": false,
		"a@" + strings.Repeat("b.", 125) + "com": false,
		"\u202eada@example.com":                  false,
		"ada@example.com, eve@example.com":       false,
		`"ada eve"@example.com`:                  false,
		"ada@[127.0.0.1]":                        false,
		"ada@example.com/../../etc":              false,
		"ada@-example.com":                       true,
		"javascript:alert(1)@example.com":        false,
		"ada@example.com?subject=x":              false, "ada=x@example.com": true,
		"{{.}}@example.com":                                true,
		"ada@example.com" + strings.Repeat(" ", 300):       true,
		"ada@" + strings.Repeat("c", 250) + ".com":         false,
		"ADA@EXAMPLE.COM":                                  true,
		"ada@exa\u0301mple.com":                            false,
		"ada@" + strings.Repeat("d", 50) + ".example.com ": true,
		"ada@example.com\u00a0":                            false, // a space that is not ASCII
	} {
		cmd := addMember()
		cmd.Email = email
		if err := cmd.Check(); (err == nil) != fine {
			t.Errorf("%q: %v, want accepted: %t", email, err, fine)
		}
	}
	if got := tenants.NormalEmail(" ADA@Example.COM\t"); got != "ada@example.com" {
		t.Errorf("normal form: %q", got)
	}
}

// Printing never shows a password.
func TestPasswordHidesItself(t *testing.T) {
	password := tenants.Password("correct horse battery")
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d"} {
		for _, value := range []any{password, addMemberWith(password)} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "horse") || strings.Contains(got, fmt.Sprintf("%x", "horse")) {
				t.Errorf("%s shows it: %s", verb, got)
			}
		}
	}
}

func addMemberWith(password tenants.Password) tenants.AddMember {
	cmd := addMember()
	cmd.Password = password
	return cmd
}

func memberIdentified() tenants.MemberIdentified {
	return tenants.MemberIdentified{Member: "mem_1", Issuer: "https://id.example", Subject: "248289761001", At: later}
}

// A member is one person at an identity provider, until the password
// is reset by a code. Another provider replaces the previous one.
func TestIdentifyDecisions(t *testing.T) {
	identify := func(issuer, subject string) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.Identify(tenants.Identify{Identity: tenants.ProviderIdentity{Issuer: issuer, Subject: subject}, At: later})
		}
	}
	same, another := identify("https://id.example", "248289761001"), identify("https://id.example", "7")
	moved := tenants.MemberIdentified{Member: "mem_1", Issuer: "https://new.example", Subject: "248289761001", At: later}
	changed := tenants.MemberIdentified{Member: "mem_1", Issuer: "https://id.example", Subject: "7", At: later}
	given := []tenants.Event{memberAdded(), memberIdentified()}
	after := func(event tenants.Event) []tenants.Event { return append(given[:2:2], event) }
	decide(t, map[string]decision[tenants.Member]{
		"the first time":         {given: given[:1], when: same, then: []tenants.Event{memberIdentified()}},
		"again":                  {given: given, when: same},
		"somebody else":          {given: given, when: another, fails: tenants.ErrOtherIdentity},
		"at another provider":    {given: given, when: identify("https://new.example", "248289761001"), then: []tenants.Event{moved}},
		"back at the first one":  {given: after(moved), when: another, then: []tenants.Event{changed}},
		"after a reset":          {given: after(tenants.MemberPasswordChanged{Member: "mem_1", Reset: true, At: later}), when: another, then: []tenants.Event{changed}},
		"after another password": {given: after(tenants.MemberPasswordChanged{Member: "mem_1", At: later}), when: another, fails: tenants.ErrOtherIdentity},
		"who was removed":        {given: after(tenants.MemberRemoved{Member: "mem_1", At: later}), when: same, fails: tenants.ErrNotFound},
		"nobody":                 {when: same, fails: tenants.ErrNotFound},
	})
}

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
	const near, out, statement, mention = tenants.ThresholdMail, tenants.ExhaustedMail, tenants.StatementMail, tenants.MentionMail
	developer := tenants.MemberRoleChanged{Member: "mem_1", Role: tenants.Developer, At: later}
	added, removed := memberAdded(), tenants.MemberRemoved{Member: "mem_1", At: later}
	decide(t, map[string]decision[tenants.Member]{
		"all, as before":         {given: []tenants.Event{added}, when: choose(statement, mention, near, out)},
		"some":                   {given: []tenants.Event{added}, when: choose(out, mention), then: []tenants.Event{without(near, statement)}},
		"none":                   {given: []tenants.Event{added}, when: choose(), then: []tenants.Event{without(near, out, statement, mention)}},
		"none of a developer":    {given: []tenants.Event{added, developer}, when: choose(), then: []tenants.Event{without(mention)}},
		"one of a former owner":  {given: []tenants.Event{added, without(near), developer}, when: choose(near, mention)},
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

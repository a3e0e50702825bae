package tenants_test

import (
	"fmt"
	"strings"
	"testing"

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

// A member is added once, with one spelling of the address; a request that comes again changes nothing.
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

// An address has one form, and nothing that could be mistaken for another address or carry something along.
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

// A password in clear never shows itself by being printed.
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

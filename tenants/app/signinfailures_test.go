package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// failuresReported are the lines of the audit about failed
// sign-ins of an organization's members, oldest first.
func (p *process) failuresReported(t *testing.T, organization string) []map[string]any {
	t.Helper()
	return p.must(t, 200, "GET", "/v1/audit-events?organization="+organization+"&action=member.sign_ins_failed", "").items(t)
}

// awaitFailures waits for so many lines, and returns the newest's failures.
func (p *process) awaitFailures(t *testing.T, organization string, lines int) map[string]any {
	t.Helper()
	var reported []map[string]any
	testenv.Eventually(t, timeout, func() error {
		if reported = p.failuresReported(t, organization); len(reported) != lines {
			return fmt.Errorf("%d lines", len(reported))
		}
		return nil
	})
	for _, line := range reported { // whatever the order of the list
		if after, ok := line["after"].(map[string]any); ok && (lines == 1 || after["refused"] != nil) {
			return after
		}
	}
	t.Fatalf("the lines are %v", reported)
	return nil
}

// The first failure to sign in as a member is in the organization's audit,
// and the first refused one, the others as one line an hour with their
// number: nobody can fill it. The log has each, without the address.
func TestFailuresToSignInAreAudited(t *testing.T) {
	w := newWorld(t)
	clock := &watch{}
	w.clock = clock.now
	p := w.start(t, operatorToken)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	id := p.add(t, acme.organization, "ada@example.com", "owner")

	p.browser("203.0.113.200").signIn(t, "ADA@example.com", "wrong horse battery staple")
	first := p.awaitFailures(t, acme.organization, 1)
	if first["member"] != id || first["failed"] != 1.0 || text(first["networks"]) != `["203.0.113.200/32"]` {
		t.Errorf("the first: %v", first)
	}
	p.guess(t, "ada@example.com") // nine more, and a refused one
	p.guess(t, "nobody@example.com")
	testenv.Eventually(t, timeout, func() error {
		if strings.Count(w.log.String(), "a sign-in failed") != 20 {
			return errors.New("not all is logged")
		}
		return nil
	})
	locked := p.awaitFailures(t, acme.organization, 2)
	if locked["member"] != id || locked["failed"] != 9.0 || locked["refused"] != 1.0 || len(locked["networks"].([]any)) != 5 {
		t.Errorf("the first that is refused: %v", locked)
	}
	p.guess(t, "ada@example.com")
	if reported := p.failuresReported(t, acme.organization); len(reported) != 2 {
		t.Errorf("within the hour: %v", reported)
	}
	clock.pass(time.Hour + time.Minute)
	p.awaitFailures(t, acme.organization, 3)
	refused := 0.0
	for _, line := range p.failuresReported(t, acme.organization) {
		if n, ok := line["after"].(map[string]any)["refused"].(float64); ok {
			refused += n
		}
	}
	if refused != 2 {
		t.Errorf("after the hour %v refused attempts are reported, want 2", refused)
	}
	if reported := p.failuresReported(t, other.organization); len(reported) != 0 {
		t.Errorf("another organization is reported %v", reported)
	}
	for _, hidden := range []string{"ada@example.com", "wrong horse"} {
		if strings.Contains(strings.ToLower(w.log.String()), hidden) {
			t.Errorf("%q is logged", hidden)
		}
	}
}

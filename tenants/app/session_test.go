package app_test

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

const confirmPage = "/console/confirm"

// A watch is a clock that a test sets forward.
type watch struct{ ahead atomic.Int64 }

func (c *watch) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *watch) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// visit follows at most five redirects, as a browser does.
func (b *browser) visit(t *testing.T, path string) (page, string) {
	t.Helper()
	for range 5 {
		got := b.navigate(t, path)
		if got.status != 303 {
			return got, path
		}
		path = got.header.Get("Location")
	}
	t.Fatalf("the console leads from page to page, at last to %s", path)
	return page{}, ""
}

func (b *browser) navigate(t *testing.T, path string) page {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), "GET", "https://weir.example"+path, nil)
	request.Header.Set("Sec-Fetch-Mode", "navigate")
	return b.send(t, request)
}

// signedInLater returns a browser with an
// owner's session, and the clock of its server.
func signedInLater(t *testing.T) (*browser, *watch, *neighbour) {
	t.Helper()
	w, clock := newWorld(t), &watch{}
	w.clock = clock.now
	p := w.start(t, operatorToken)
	n := w.follow(t)
	return p.signedIn(t, p.tenant(t, "Acme"), "owner"), clock, n
}

// A session in use is extended, with another secret
// each time, and ends a week after the sign-in.
func TestSessionLastsAsLongAsItIsUsed(t *testing.T) {
	b, clock, n := signedInLater(t)
	first, secrets := b.Session(), map[string]bool{}
	for used := time.Duration(0); used < tenants.SessionLifetime-tenants.SessionIdleTimeout; used += 2 * tenants.RenewAfter {
		before := b.Session()
		clock.pass(tenants.RenewAfter - time.Minute)
		if b.visit(t, projectsPage); b.Session() != before {
			t.Fatalf("after %s: renewed before it was due", used)
		}
		clock.pass(tenants.RenewAfter + time.Minute)
		if got, at := b.visit(t, projectsPage+"?x=1"); got.status != 200 || at != projectsPage+"?x=1" || b.Session() == before {
			t.Fatalf("after %s: %d at %s, another secret: %t", used, got.status, at, b.Session() != before)
		}
		secrets[b.Session()] = true
	}
	if n.awaitLookup(t, b.Session(), nil); secrets[first] || len(secrets) != 26 {
		t.Errorf("%d secrets", len(secrets))
	}
	clock.pass(tenants.SessionIdleTimeout)
	if _, at := b.visit(t, projectsPage); !strings.HasPrefix(at, "/console/sign-in") {
		t.Errorf("after a week: %s", at)
	}
}

package signin_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// A signed-in member is redirected, and signs out for good.
func TestSignInAndOut(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	if got := b.get(t, signInPage); got.status != 303 || got.at() != "/console" {
		t.Errorf("signing in again: %d to %q", got.status, got.at())
	}
	if got := b.get(t, accountPage); got.status != 200 {
		t.Errorf("the account: %d", got.status)
	}
	cookie := b.Cookies[identity.SessionCookie]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" ||
		cookie.MaxAge != 12*60*60 || !regexp.MustCompile(`^weirses_[0-9a-f]{48}$`).MatchString(b.Session()) {
		t.Errorf("the cookie is %+v", cookie)
	}
	if got := b.post(t, "/console/sign-out", nil); got.status != 303 || got.at() != signInPage || b.Session() != "" {
		t.Errorf("signing out: %d to %q, cookie %q", got.status, got.at(), b.Session())
	}
	if shown := b.get(t, signInPage); !strings.Contains(shown.body, "You have signed out") {
		t.Errorf("after that: %s", shown.body)
	}
	b.Cookies[identity.SessionCookie] = cookie
	if _, at := b.visit(t, accountPage); !strings.HasPrefix(at, signInPage) {
		t.Errorf("the old cookie still opens %s", at)
	}
}

// A cookie from before the sign-in means nothing
// after it, and the previous session has ended.
func TestSignInStartsANewSession(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	planted := s.signedIn(t, "bob").Cookies[identity.SessionCookie]
	victim := s.browser("192.0.2.8")
	victim.Cookies[identity.SessionCookie] = planted
	if got := victim.signIn(t, "ada@example.com", secret); got.status != 303 || victim.Session() == planted.Value {
		t.Fatalf("sign in: %d, secret as before: %t", got.status, victim.Session() == planted.Value)
	}
	if _, err := s.credentials.Lookup(planted.Value); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("the planted session: %v", err)
	}
	if got, err := s.credentials.Lookup(victim.Session()); err != nil || got.Member != "mem_ada" {
		t.Errorf("the new session is %+v, %v", got, err)
	}
	first := victim.Session()
	victim.Cookies = map[string]*http.Cookie{}
	victim.signIn(t, "ada@example.com", secret)
	if victim.Session() == first || victim.Session() == "" {
		t.Errorf("signing in twice gives %q twice", first)
	}
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.TotalAlloc
}

// A wrong password and an unknown address get the same page. Both
// compare a password with a hash, which takes nearly all of the time
// and 19 MiB. Other tests may allocate meanwhile, but less each time.
func TestSignInDisclosesNoMember(t *testing.T) {
	s := openSite(t, password.Slow(), nil)
	try := func(email string, address int) (page, uint64) {
		b := s.browser(fmt.Sprint("198.51.100.", address))
		before := allocated()
		got := b.signIn(t, email, wrong)
		return got, allocated() - before
	}
	const hashed = 19 << 20
	known, unknown := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for i := range 3 {
		guessed, took := try("ADA@example.com ", i)
		known = min(known, took)
		nobody, took := try("eve@example.com", i)
		unknown = min(unknown, took)
		if guessed.status != 422 || guessed.status != nobody.status || strings.ReplaceAll(guessed.body, "ada@", "eve@") != nobody.body {
			t.Fatalf("a wrong password: %d %s\nan unknown address: %d %s", guessed.status, guessed.body, nobody.status, nobody.body)
		}
		if strings.Contains(guessed.body, "wrong horse") {
			t.Error("the password is shown")
		}
	}
	if known < hashed || unknown < hashed {
		t.Errorf("a wrong password takes %d bytes, an unknown address %d, a hash %d", known, unknown, hashed)
	}
	for _, email := range []string{"", "ada", "ada@example.com\x00", strings.Repeat("a", 1000) + "@example.com", "ada@example.com' OR '1'='1"} {
		if got, _ := try(email, 6); got.status != 422 {
			t.Errorf("address %q: %d", email, got.status)
		}
	}
}

// Guesses are limited, for one address of a member and for
// one network, even if the right password comes at last.
func TestAttemptsToSignInAreLimited(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	attempts := func(email func(i int) string, address func(i int) string) (allowed int, last page) {
		for i := range 40 {
			if last = s.browser(address(i)).signIn(t, email(i), wrong); last.status == 429 {
				return i, last
			}
		}
		return 40, last
	}
	spread := func(i int) string { return fmt.Sprint("203.0.113.", i) }
	allowed, last := attempts(func(int) string { return "ada@example.com" }, spread)
	if allowed != 10 || last.header.Get("Retry-After") == "" {
		t.Errorf("%d attempts for one member from everywhere, then %d %v", allowed, last.status, last.header)
	}
	if got := s.browser("192.0.2.99").signIn(t, "ada@example.com", secret); got.status != 429 {
		t.Errorf("the right password after too many wrong ones: %d", got.status)
	}
	someone := func(i int) string { return fmt.Sprintf("user%d@example.com", i) }
	if allowed, _ := attempts(someone, func(int) string { return "192.0.2.50" }); allowed != 20 {
		t.Errorf("%d attempts from one address", allowed)
	}
	if allowed, _ := attempts(someone, func(i int) string { return fmt.Sprintf("[2001:db8::%d]", 1+i%4) }); allowed != 20 {
		t.Errorf("%d attempts from one IPv6 network", allowed)
	}
}

// Pages without a session are limited by network.
func TestOpenPagesAreLimited(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	ask := func(address string) int { return s.browser(address).get(t, "/console/sign-in").status }
	asked := 0
	for ask("192.0.2.50") != 429 {
		if asked++; asked > 1000 {
			t.Fatal("a thousand at once are answered")
		}
	}
	if got := ask("192.0.2.51"); got != 200 {
		t.Errorf("another network gets %d", got)
	}
}

// An unused session ends by itself, and its
// member returns to the page they wanted.
func TestIdleSessionEnds(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	s.pass(tenants.SessionIdleTimeout)
	got, at := b.visit(t, accountPage+"?x=1")
	if at != signInPage+"?to="+url.QueryEscape(accountPage+"?x=1") || !strings.Contains(got.text(), `name="to" value="`+accountPage+`?x=1"`) {
		t.Errorf("after 12 hours: %s %s", at, got.body)
	}
}

// A session in use continues with another secret. All tabs that send the
// old one get the same new one, however often the answer is lost. A
// moment later the old one is worthless; at once where the session ends.
func TestRenewalsAreTheSameForAllTabs(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	old := b.Cookies[identity.SessionCookie]
	if b.visit(t, accountPage); b.Session() != old.Value {
		t.Fatal("the session was renewed before it was due")
	}
	s.pass(tenants.RenewAfter)
	if got, at := b.visit(t, accountPage+"?x=1"); got.status != 200 || at != accountPage+"?x=1" || b.Session() == old.Value {
		t.Fatalf("renewed: %d at %s, the same secret: %t", got.status, at, b.Session() == old.Value)
	}
	other := s.browser("192.0.2.8")
	other.Cookies[identity.SessionCookie] = old
	if got, _ := other.visit(t, accountPage); got.status != 200 || other.Session() != b.Session() {
		t.Errorf("another tab: %d, the same secret: %t", got.status, other.Session() == b.Session())
	}
	s.pass(tenants.SecretOverlap)
	other.Cookies[identity.SessionCookie] = old
	if _, at := other.visit(t, accountPage); !strings.HasPrefix(at, signInPage) {
		t.Errorf("the old secret still opens %s", at)
	}
	replaced := b.Session()
	s.pass(tenants.RenewAfter)
	b.visit(t, accountPage)
	newest := b.Session()
	b.post(t, "/console/sign-out", nil)
	for _, each := range []string{replaced, newest} {
		if _, err := s.credentials.Lookup(each); !errors.Is(err, identity.ErrRevoked) {
			t.Errorf("after signing out: %v", err)
		}
	}
}

// No address redirects a member out of the console.
func TestDetoursLeadBackOnly(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	for _, to := range []string{
		"https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/console/../../evil", "/console/%2e%2e/v1/logs",
		"javascript:alert(1)", "/v1/logs", "/console/session/renew?to=/console/logs", "/console/sign-out", "/console\n/logs", "/console/ x",
		"https:/console/logs", "/consolee/logs", "/console/logs\x00", strings.Repeat("/console/logs", 1000), "", "%", "//console/logs", "/console/é",
	} {
		query := "?to=" + url.QueryEscape(to)
		if got := b.get(t, "/console/session/renew"+query); got.status != 303 || got.at() != "/console" {
			t.Errorf("renewing leads from %q to %d %q", to, got.status, got.at())
		}
		if got := b.get(t, signInPage+query); got.status != 303 || got.at() != "/console" {
			t.Errorf("signing in leads from %q to %d %q", to, got.status, got.at())
		}
		got := b.post(t, confirmPage, map[string]string{"to": to, "password": secret})
		if at := got.at(); at != "/console" && (to != "" || at != confirmPage) {
			t.Errorf("confirming leads from %q to %d %q", to, got.status, at)
		}
		s.pass(time.Minute) // for another attempt
	}
	for _, to := range []string{
		accountPage, "/console/settings/api-keys?project=a%20b&x=%2F%2Fy", "/console/errors/grp_1", "/console/confirm?to=%2Fconsole%2Flogs",
	} {
		if got := b.get(t, "/console/session/renew?to="+url.QueryEscape(to)); got.at() != to {
			t.Errorf("renewing leads from %q to %q", to, got.at())
		}
	}
}

// A session in use is extended, with another secret
// each time, and ends a week after the sign-in.
func TestSessionLastsAsLongAsItIsUsed(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	secrets := map[string]bool{b.Session(): true}
	for used := time.Duration(0); used < tenants.SessionLifetime-tenants.SessionIdleTimeout; used += 2 * tenants.RenewAfter {
		s.pass(2 * tenants.RenewAfter)
		if got, at := b.visit(t, accountPage+"?x=1"); got.status != 200 || at != accountPage+"?x=1" || secrets[b.Session()] {
			t.Fatalf("after %s: %d at %s, another secret: %t", used, got.status, at, !secrets[b.Session()])
		}
		secrets[b.Session()] = true
	}
	s.pass(tenants.SessionIdleTimeout)
	if _, at := b.visit(t, accountPage); !strings.HasPrefix(at, signInPage) {
		t.Errorf("after a week: %s", at)
	}
}

// A session is distinguished by its browser's User-Agent, shown as text.
func TestClientsAreShownAsText(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	evil := s.browser("192.0.2.9")
	evil.agent = `"><script>alert(1)</script>` + strings.Repeat("x", 500)
	evil.signIn(t, "ada@example.com", secret)
	shown := s.signedIn(t, "ada").get(t, accountPage).body
	if strings.Contains(shown, "<script>alert") || !strings.Contains(shown, `title="&#34;&gt;&lt;script&gt;alert(1)`) || strings.Contains(shown, strings.Repeat("x", 200)) {
		t.Errorf("shown as %s", shown)
	}
}

// A member ends one of their sessions, and stays in the other.
// Nobody ends another's, even in the same organization.
func TestOneSessionIsEnded(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	here, lost, bobs := s.signedIn(t, "ada"), s.signedIn(t, "ada"), s.signedIn(t, "bob")
	held, err := s.credentials.Lookup(bobs.Session())
	testenv.Must(t, err)
	shown := here.get(t, accountPage).body
	if strings.Count(shown, "This session") != 1 || strings.Contains(shown, held.ID) || strings.Contains(shown, here.Session()) {
		t.Errorf("the sessions: %s", shown)
	}
	foreign, unknown := here.post(t, accountPage+"/sessions/"+held.ID+"/end", nil), here.post(t, accountPage+"/sessions/ses_0/end", nil)
	if foreign.status != 404 || strings.ReplaceAll(foreign.body, held.ID, "ses_0") != unknown.body {
		t.Errorf("another's: %d %s", foreign.status, foreign.body)
	}
	end := regexp.MustCompile(accountPage + `/sessions/[^/"]+/end"`).FindString(shown)
	if got := here.post(t, strings.TrimSuffix(end, `"`), nil); got.status != 303 {
		t.Fatalf("ended: %d %s", got.status, got.body)
	}
	if got := here.get(t, accountPage); got.status != 200 {
		t.Errorf("the one that stays: %d to %q", got.status, got.at())
	}
	if got := lost.get(t, accountPage); got.status == 200 {
		t.Errorf("the one that was ended: %d", got.status)
	}
	here.post(t, accountPage+"/sessions/end-others", nil)
	if got := bobs.get(t, accountPage); got.status != 200 {
		t.Errorf("another's, after all others of one's own: %d", got.status)
	}
}

// The console redirects signed-in members to their start,
// others to the sign-in; an unknown page is not found.
func TestTheConsolesStart(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	stranger, ada := s.browser("192.0.2.9"), s.signedIn(t, "ada")
	for _, path := range []string{"/console", "/console/"} {
		if got := stranger.get(t, path); got.status != 303 || got.at() != signInPage {
			t.Errorf("%s to a stranger: %d to %q", path, got.status, got.at())
		}
		if got := ada.get(t, path); got.status != 303 || got.at() == signInPage {
			t.Errorf("%s to who has signed in: %d to %q", path, got.status, got.at())
		}
	}
	if got := ada.get(t, "/console/settings"); got.status != 303 {
		t.Errorf("the settings: %d %s", got.status, got.body)
	}
	asset := regexp.MustCompile(`/console/assets/[^"]+`).FindString(stranger.get(t, signInPage).body)
	if got := stranger.get(t, asset); got.status != 200 {
		t.Errorf("%s: %d %s", asset, got.status, got.body)
	}
	if got := stranger.get(t, "/console/nothing"); got.status != 404 {
		t.Errorf("a page that is none: %d %s", got.status, got.body)
	}
}

func keepDevice(t *testing.T, pool *pgxpool.Pool, number int, instead ...string) (replaced []string) {
	t.Helper()
	at := tenantstest.Noon.Add(time.Duration(number) * time.Minute)
	device := tenants.Device{
		Organization: "org_a", Member: "mem_a", Hash: deviceHash(number), Session: "ses_a", UsedAt: at, ExpiresAt: at.Add(tenants.DeviceLifetime),
	}
	err := asA(t, pool, func(tx pgx.Tx) (err error) {
		replaced, err = signin.ReplaceDevices(t.Context(), tx, device, instead)
		return err
	})
	testenv.Must(t, err)
	return replaced
}

func asA(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	t.Helper()
	return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "org_a"); err != nil {
			return err
		}
		return fn(tx)
	})
}

func deviceHash(number int) string { return fmt.Sprintf("%064x", number) }

// Only the last used devices of a member are kept, each until it is unused
// for long. A browser counts once, however often its member signs in there.
func TestDevicesAreBounded(t *testing.T) {
	pool := tenantstest.Open(t)
	views := signin.NewStore(query.NewReader(pool))
	known := func(number int, now time.Time) bool {
		device, err := views.DeviceOf(t.Context(), "a@example.com", []string{deviceHash(number)}, now)
		return err == nil && device.Member == "mem_a"
	}
	for i := range tenants.MaxDevices + 2 {
		keepDevice(t, pool, i)
	}
	for i := range tenants.MaxDevices + 2 {
		if got, want := known(i, tenantstest.Noon), i >= 2; got != want {
			t.Errorf("device %d is known: %t, want %t", i, got, want)
		}
	}
	if replaced := keepDevice(t, pool, 20, deviceHash(11), deviceHash(99)); len(replaced) != 1 || replaced[0] != deviceHash(11) {
		t.Errorf("replaced %v", replaced)
	}
	if !known(2, tenantstest.Noon) || known(11, tenantstest.Noon) || !known(20, tenantstest.Noon) {
		t.Error("a device that gets another secret takes the place of others")
	}
	if known(20, tenantstest.Noon.Add(20*time.Minute).Add(tenants.DeviceLifetime)) {
		t.Error("a device is known forever")
	}
	if _, err := views.DeviceOf(t.Context(), "b@example.com", []string{deviceHash(20)}, tenantstest.Noon); err == nil {
		t.Error("the device is another member's too")
	}
}

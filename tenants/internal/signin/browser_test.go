package signin_test

import (
	"crypto/rand"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const (
	signInPage   = identity.SignInPath
	confirmPage  = "/console/confirm"
	accountPage  = "/console/settings/account"
	passwordPage = accountPage + "/password" // needs a recent proof
	wrong        = "wrong horse battery staple"
)

// A site serves the pages of signing in for members of
// org_a: ada@example.com and bob@example.com, whose password
// is secret. What it publishes is in force at once.
type site struct {
	pool        *pgxpool.Pool
	events      *unitofwork.Events
	credentials *identity.Credentials
	published   relay.Cursor
	ahead       atomic.Int64
	handler     http.Handler
}

// openSite opens a site whose passwords have that cost,
// with an identity provider unless that is nil. The test
// runs in parallel: it mostly waits for its database.
func openSite(t *testing.T, cost password.Cost, provider *oidc.Provider) *site {
	t.Helper()
	t.Parallel()
	s := &site{pool: tenantstest.Open(t)}
	work := tenantstest.NewWriter(s.pool)
	work.Clock, s.events, s.credentials = s.now, work.Events, identity.NewCredentials(s.now)
	passwords, err := password.NewHasher(cost, rand.Reader)
	testenv.Must(t, err)
	for _, name := range []string{"ada", "bob"} {
		s.add(t, passwords, name)
	}
	party, err := passkey.New("https://weir.example")
	testenv.Must(t, err)
	services := signin.New(signin.Config{
		Work: work, Members: func(in *query.Reader) signin.Members { return people.NewStore(in) },
		Organizations: func(in *query.Reader) signin.Organizations { return registry.NewStore(in) }, Passwords: passwords, RelyingParty: party,
		Challenges: challenge.New(s.pool, s.now, rand.Reader), Provider: provider, Dropped: func() {}, Logger: slog.New(slog.DiscardHandler),
	})
	kit := tenantstest.Pages()
	kit.Clock = s.now
	kit.Guard = identity.NewGuard(identity.GuardConfig{
		Credentials: s.credentials, Ready: func() error { return nil }, Clock: s.now, Metrics: prometheus.NewRegistry(),
	})
	shown := signin.NewPages(kit, services, prometheus.NewRegistry())
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: s.now})
	shown.MountOpen(router)
	kit.Mount(router, changes.NewLimiter(s.now, 1000), shown.Mount)
	s.handler = routetest.Handler(router)
	return s
}

// add adds an owner of org_a.
func (s *site) add(t *testing.T, passwords *password.Hasher, name string) {
	t.Helper()
	hash, err := passwords.Hash(t.Context(), password.Known("org_a"), secret)
	testenv.Must(t, err)
	added := tenants.MemberAdded{Member: "mem_" + name, Organization: "org_a", Email: name + "@example.com", Name: name, Role: tenants.Owner,
		PasswordHash: hash, At: tenantstest.Noon}
	testenv.Must(t, s.events.Append(t.Context(), unitofwork.Stream("org_a", "member", added.Member), 0, nil, added))
}

func (s *site) now() time.Time { return tenantstest.Now().Add(time.Duration(s.ahead.Load())) }

func (s *site) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// publish applies new decisions to the credentials.
func (s *site) publish(t *testing.T) {
	t.Helper()
	err := pg.ReadAsSystem(t.Context(), s.pool, func(tx pgx.Tx) error {
		messages, err := bus.NewPublication(s.events).Read(t.Context(), tx, s.published, 1000)
		for _, m := range messages {
			s.published = m.Cursor
			if err == nil && m.Topic == contract.TopicCredentials {
				err = s.credentials.Apply(m.Message.Metadata[weirbus.KeyMetadata], m.Message.Payload)
			}
		}
		return err
	})
	testenv.Must(t, err)
}

// A browser marks its forms as sent from the console itself.
type browser struct {
	*tenantstest.Browser

	s     *site
	agent string // User-Agent
}

func (s *site) browser(address string) *browser {
	return &browser{Browser: tenantstest.NewBrowser(address), s: s}
}

// A page is a response as the browser got it.
type page struct {
	status int
	header http.Header
	body   string
}

// text is the page's text, with entities resolved.
func (p page) text() string { return html.UnescapeString(p.body) }

// at is the page's redirect.
func (p page) at() string { return p.header.Get("Location") }

func (b *browser) send(t *testing.T, method, path string, form map[string]string) page {
	t.Helper()
	values := url.Values{}
	for name, value := range form {
		values.Set(name, value)
	}
	request := httptest.NewRequestWithContext(t.Context(), method, "https://weir.example"+path, strings.NewReader(values.Encode()))
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Sec-Fetch-Mode", "navigate")
	request.Header.Set("User-Agent", b.agent)
	if method == "POST" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	recorder := b.Send(b.s.handler, request)
	b.s.publish(t)
	return page{recorder.Code, recorder.Header(), recorder.Body.String()}
}

func (b *browser) get(t *testing.T, path string) page { t.Helper(); return b.send(t, "GET", path, nil) }

func (b *browser) post(t *testing.T, path string, form map[string]string) page {
	t.Helper()
	return b.send(t, "POST", path, form)
}

// visit follows at most five redirects, as a browser does.
func (b *browser) visit(t *testing.T, path string) (page, string) {
	t.Helper()
	for range 5 {
		got := b.get(t, path)
		if got.status != 303 {
			return got, path
		}
		path = got.at()
	}
	t.Fatalf("the console leads from page to page, at last to %s", path)
	return page{}, ""
}

func (b *browser) signIn(t *testing.T, email, password string) page {
	t.Helper()
	return b.post(t, signInPage, map[string]string{"email": email, "password": password})
}

func (b *browser) confirm(t *testing.T, password string) page {
	t.Helper()
	return b.post(t, confirmPage, map[string]string{"password": password})
}

// signedIn is a browser with a member's session.
func (s *site) signedIn(t *testing.T, name string) *browser {
	t.Helper()
	b := s.browser("192.0.2.7")
	if got := b.signIn(t, name+"@example.com", secret); got.status != 303 || b.Session() == "" {
		t.Fatalf("sign in: %d %s", got.status, got.body)
	}
	return b
}

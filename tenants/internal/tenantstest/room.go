package tenantstest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Now is the present in a room: an hour after all of its events.
func Now() time.Time { return Noon.Add(time.Hour) }

// NewWriter returns a writer without a broker: what
// it stores is never in force, so it hardly waits.
func NewWriter(pool *pgxpool.Pool) *unitofwork.Writer {
	var drawn atomic.Int64
	return unitofwork.NewWriter(unitofwork.Config{
		Events: projections.NewEvents(pool), Views: query.NewReader(pool), Clock: Now, Random: rand.Reader, Limits: tenants.Limits{}.OrDefault(),
		Waiter: bus.NewCredentialWaiter(identity.NewCredentials(Now), func() {}, time.Millisecond, slog.New(slog.DiscardHandler)),
		IDs:    func() string { return fmt.Sprint("drawn_", drawn.Add(1)) },
		RoleOf: people.RoleOf, Exists: registry.Exists,
	})
}

// API is a kit for a room's API.
func API() *api.Kit { return &api.Kit{Clock: Now} }

// Route adds the routes of a room's API.
func Route(router chi.Router, operations []openapi.Operation) {
	for _, operation := range operations {
		operation.Mount(router)
	}
}

// Pages is a kit for a room's pages.
func Pages() *pages.Kit {
	return pages.NewKit(pages.Config{Directory: directory{}, Clock: Now, IDs: func() string { return "form_1" }, Origin: "https://weir.example"})
}

type directory struct{}

// Member implements pages.Directory.
func (directory) Member(_ context.Context, as pg.Organization, id string) (tenants.Member, error) {
	return tenants.Member{ID: id, Organization: string(as), Name: "Ada", Email: "ada@example.com"}, nil
}

// Organization implements pages.Directory.
func (directory) Organization(_ context.Context, _ pg.Organization, id string) (tenants.Organization, error) {
	return tenants.Organization{ID: id, Name: "Acme"}, nil
}

// Token is a service token of an organization,
// or of the installation if that is empty.
func Token(organization string) identity.Principal {
	return identity.Principal{Kind: contract.CredentialServiceToken, ID: "tok_1", Organization: organization, Scopes: []string{api.AdminScope}}
}

// SignedIn is the member of org_a, or org_b, in
// their session's role. In the table they are admin.
func SignedIn(name string, role tenants.Role) identity.Principal {
	return identity.Principal{
		Kind: contract.CredentialSession, ID: "ses_" + name, Organization: "org_" + name, Member: "mem_" + name,
		Scopes: []string{identity.RoleScope(string(role))}, AuthenticatedAt: Now(),
	}
}

// CallAPI sends a request of an organization's token, or
// the installation's, to an API, which answers in JSON.
func CallAPI(t *testing.T, mount func(chi.Router), organization, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	got := Call(t, mount, Token(organization), method, path, body, nil)
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, got.Body, err)
	}
	return got.Code, answer
}

// Call sends a principal's request to the routes
// of mount: JSON, or the form if there is one.
func Call(t *testing.T, mount func(chi.Router), as identity.Principal, method, path, body string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	kind := "application/json"
	if form != nil {
		body, kind = form.Encode(), "application/x-www-form-urlencoded"
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: Now})
	mount(router)
	request := httptest.NewRequestWithContext(identity.NewContext(t.Context(), as), method, "https://weir.example"+path, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", kind)
	}
	recorder := httptest.NewRecorder()
	routetest.Handler(router).ServeHTTP(recorder, request)
	if recorder.Code == http.StatusInternalServerError {
		t.Errorf("%s %s: %s", method, path, recorder.Body)
	}
	return recorder
}

// A Browser keeps cookies.
type Browser struct {
	Address string // it comes from
	Cookies map[string]*http.Cookie
}

// NewBrowser returns one without cookies.
func NewBrowser(address string) *Browser {
	return &Browser{Address: address, Cookies: map[string]*http.Cookie{}}
}

// Send sends a request to a console.
func (b *Browser) Send(console http.Handler, request *http.Request) *httptest.ResponseRecorder {
	request.RemoteAddr = b.Address + ":40000"
	for _, cookie := range b.Cookies {
		request.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	console.ServeHTTP(recorder, request)
	for _, cookie := range recorder.Result().Cookies() {
		if b.Cookies[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(b.Cookies, cookie.Name)
		}
	}
	return recorder
}

// Session is the secret of the browser's session, "" if it has none.
func (b *Browser) Session() string {
	if cookie, ok := b.Cookies[identity.SessionCookie]; ok {
		return cookie.Value
	}
	return ""
}

// Want checks the status of a page, and that it contains a text.
func Want(t *testing.T, what string, got *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), says) {
		t.Errorf("%s: %d %s, want %d with %q", what, got.Code, got.Body, status, says)
	}
}

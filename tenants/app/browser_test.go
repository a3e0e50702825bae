package app_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// A browser marks its forms as sent from the console itself.
type browser struct {
	*tenantstest.Browser

	p *process
}

func (p *process) browser(address string) *browser {
	return &browser{Browser: tenantstest.NewBrowser(address), p: p}
}

// A page is a response as the browser got it.
type page struct {
	status int
	header http.Header
	body   string
}

// text is the page's text, with entities resolved.
func (p page) text() string { return html.UnescapeString(p.body) }

func (b *browser) send(t *testing.T, request *http.Request) page {
	t.Helper()
	recorder := b.Send(b.p.Handler(), request)
	return page{recorder.Code, recorder.Header(), recorder.Body.String()}
}

func (b *browser) get(t *testing.T, path string) page {
	t.Helper()
	return b.send(t, httptest.NewRequestWithContext(t.Context(), "GET", "https://weir.example"+path, nil))
}

func (b *browser) navigate(t *testing.T, path string) page {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), "GET", "https://weir.example"+path, nil)
	request.Header.Set("Sec-Fetch-Mode", "navigate")
	return b.send(t, request)
}

func (b *browser) post(t *testing.T, path string, form map[string]string, headers ...header) page {
	t.Helper()
	values := url.Values{}
	for name, value := range form {
		values.Set(name, value)
	}
	request := httptest.NewRequestWithContext(t.Context(), "POST", "https://weir.example"+path, strings.NewReader(values.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, h := range headers {
		request.Header.Set(h.name, h.value)
	}
	return b.send(t, request)
}

func (b *browser) signIn(t *testing.T, email, password string) page {
	t.Helper()
	return b.post(t, "/console/sign-in", map[string]string{"email": email, "password": password})
}

// signedIn returns a browser with the session of a tenant's new member.
func (p *process) signedIn(t *testing.T, of tenant, role string) *browser {
	t.Helper()
	email := emailOf(of, role)
	p.must(t, 201, "POST", "/v1/members", text(member(of.organization, email, role)))
	b := p.browser(p.address)
	if got := b.signIn(t, email, password); got.status != 303 || b.Session() == "" {
		t.Fatalf("sign in as %s: %d %s", email, got.status, got.body)
	}
	return b
}

package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
)

// held is a body that is interrupted by something.
type held struct {
	happens func()
	body    *strings.Reader
}

func (h *held) Read(p []byte) (int, error) {
	if h.happens != nil {
		h.happens()
		h.happens = nil
	}
	return h.body.Read(p)
}

// send sends a request whose body arrives after something has happened.
func (p *process) send(t *testing.T, path, kind, body string, h header, happens func()) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, &held{happens, strings.NewReader(body)})
	request.Header.Set("Content-Type", kind)
	request.Header.Set(h.name, h.value)
	answer := httptest.NewRecorder()
	p.Handler().ServeHTTP(answer, request)
	return answer
}

// A token or a session that ends during a request does not execute it.
func testHeldRequestsEndWithTheirCredential(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "ada@held.example", "owner")
	token := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": acme.organization, "name": "n", "scopes": []string{"tenants:admin"}}))
	answer := p.send(t, "/v1/projects", "application/json", text(map[string]any{"organization": acme.organization, "name": "late"}),
		header{"Authorization", "Bearer " + token.get("token")}, func() {
			p.must(t, 200, "POST", "/v1/service-tokens/"+token.get("id")+"/revoke", "")
		})
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("a token that is revoked meanwhile: %d %s", answer.Code, answer.Body)
	}
	mallory := p.add(t, acme.organization, "mallory@held.example", "admin")
	b := p.browser("192.0.2.90")
	b.signIn(t, "mallory@held.example", password)
	answer = p.send(t, "/console/settings/service-tokens", "application/x-www-form-urlencoded", "name=n&scopes=billing%3Aread",
		header{"Cookie", identity.SessionCookie + "=" + b.Session()}, func() {
			p.must(t, 200, "POST", "/v1/members/"+mallory+"/remove", "")
		})
	if answer.Code != http.StatusSeeOther || !strings.HasPrefix(answer.Header().Get("Location"), identity.SignInPath) {
		t.Errorf("a member who is removed meanwhile: %d %s", answer.Code, answer.Body)
	}
}

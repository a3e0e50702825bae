package app_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A forged Host is in no link of a page or redirect: a
// link with a code would send the code to the other host.
func testForgedHostsMakeNoLinks(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	owner := p.signedIn(t, acme, "owner")
	for page, form := range map[string]url.Values{
		apiKeysPage:                  {"name": {"pods"}, "project": {acme.project}, "environment": {"prod"}, "form": {"f1"}},
		membersPage + "/invitations": {"email": {"bob@example.com"}, "role": {"developer"}, "form": {"f2"}},
		projectsPage:                 {"name": {"Checkout"}, "form": {"f3"}},
	} {
		request := httptest.NewRequestWithContext(t.Context(), "POST", "https://evil.example"+page, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		request.Header.Set("X-Forwarded-Host", "evil.example")
		got := owner.send(t, request)
		if strings.Contains(got.text(), "evil.example") || strings.Contains(got.header.Get("Location"), "evil.example") {
			t.Errorf("%s leads to another host: %d %v %s", page, got.status, got.header, got.body)
		}
		if got.status == 201 && !strings.Contains(got.text(), "https://weir.example/") {
			t.Errorf("%s shows no link of the configured origin: %s", page, got.body)
		}
	}
}

package signin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/signin"
)

const oidcPage = signInPage + "/oidc"

func openSiteWithProvider(t *testing.T) (*site, *mockoidc.MockOIDC) {
	t.Helper()
	provider, err := mockoidc.Run()
	testenv.Must(t, err)
	t.Cleanup(func() { _ = provider.Shutdown() })
	return openSite(t, password.ForTests(), oidc.New(oidc.Config{
		Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: httpapi.Secret(provider.ClientSecret), Name: "Acme Id <b>",
		Redirect: "https://weir.example" + signin.OIDCCallbackPath, Clock: time.Now,
	})), provider
}

// atProvider signs in at the identity provider, and returns its redirect.
func (b *browser) atProvider(t *testing.T, provider *mockoidc.MockOIDC, email string, verified bool) string {
	t.Helper()
	provider.QueueUser(&mockoidc.MockUser{Subject: "x", Email: email, EmailVerified: verified})
	start := b.get(t, oidcPage+"?to="+passwordPage)
	if start.status != 303 {
		t.Fatalf("start: %d %s", start.status, start.body)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(start.at())
	testenv.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	back, found := strings.CutPrefix(answer.Header.Get("Location"), "https://weir.example")
	if !found {
		t.Fatalf("the provider answers %d and sends to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	return back
}

// The first time, members read what the provider's
// identity means, and that there is a password beside it.
func TestFirstSignInByProvider(t *testing.T) {
	s, provider := openSiteWithProvider(t)
	b := s.browser("192.0.2.1")
	if shown := b.get(t, signInPage).text(); !strings.Contains(shown, "Sign in with Acme Id <b>") {
		t.Errorf("the sign-in: %s", shown)
	}
	asked, err := url.Parse(b.get(t, oidcPage).at())
	if q := asked.Query(); err != nil || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" ||
		q.Get("state") == "" || q.Get("redirect_uri") != "https://weir.example"+signin.OIDCCallbackPath || q.Get("response_type") != "code" {
		t.Errorf("asked %s", asked)
	}
	for _, want := range []string{accountPage, passwordPage} {
		if got := b.get(t, b.atProvider(t, provider, "Ada@Example.com", true)); got.status != 303 || got.at() != want {
			t.Errorf("%d to %s, want %s", got.status, got.at(), want)
		}
		if shown := b.get(t, accountPage).text(); strings.Contains(shown, "if you did not set it yourself") != (want == accountPage) || !strings.Contains(shown, "Identity provider") {
			t.Errorf("the account: %s", shown)
		}
		b.Cookies = map[string]*http.Cookie{}
	}
}

// Somebody who is no member, or whose address
// is not verified, reads that, and is refused.
func TestProviderLetsOnlyMembersIn(t *testing.T) {
	s, provider := openSiteWithProvider(t)
	for name, c := range map[string]struct {
		email    string
		verified bool
		shown    string
	}{
		"a stranger":            {"eve@example.com", true, "no member here has your e-mail address"},
		"an unverified address": {"ada@example.com", false, "has not verified your e-mail address"},
		"no address":            {"", true, "has not verified your e-mail address"},
		"no address at all":     {"ada", true, "no member here"},
	} {
		b := s.browser("192.0.2.1")
		got := b.get(t, b.atProvider(t, provider, c.email, c.verified))
		if got.status != 422 || b.Session() != "" || !strings.Contains(got.text(), c.shown) || !strings.Contains(got.body, `name="password"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// What the provider returns counts once, for the
// browser that went there, and can't be forged.
func TestProviderAnswersAreForOneBrowser(t *testing.T) {
	s, provider := openSiteWithProvider(t)
	for name, forge := range map[string]func(b *browser, back string) string{
		"in another browser": func(b *browser, back string) string {
			b.Cookies = map[string]*http.Cookie{}
			return back
		},
		"in a browser that went there too": func(b *browser, back string) string {
			b.get(t, oidcPage)
			return back
		},
		"with another state": func(_ *browser, back string) string { return replaceIn(back, "state", "x") },
		"without a state":    func(_ *browser, back string) string { return replaceIn(back, "state", "") },
		"with another code":  func(_ *browser, back string) string { return replaceIn(back, "code", "x") },
		"without a code":     func(_ *browser, back string) string { return replaceIn(back, "code", "") + "&error=access_denied" },
		"with the code of another sign-in": func(_ *browser, back string) string {
			other := s.browser("198.51.100.3").atProvider(t, provider, "ada@example.com", true)
			code, _ := url.Parse(other)
			return replaceIn(back, "code", code.Query().Get("code"))
		},
		"twice": func(b *browser, back string) string {
			ticket := *b.Cookies["__Host-weir-challenge"]
			if got := b.get(t, back); got.status != 303 {
				t.Fatalf("the first time: %d %s", got.status, got.body)
			}
			b.Cookies = map[string]*http.Cookie{ticket.Name: &ticket}
			return back
		},
	} {
		b := s.browser("192.0.2.1")
		back := forge(b, b.atProvider(t, provider, "ada@example.com", true))
		if got := b.get(t, back); got.status != 422 || b.Session() != "" {
			t.Errorf("%s: %d, a session: %t", name, got.status, b.Session() != "")
		}
	}
}

func replaceIn(address, parameter, value string) string {
	parsed, _ := url.Parse(address)
	query := parsed.Query()
	query.Set(parameter, value)
	return parsed.Path + "?" + query.Encode()
}

// An outage of the provider stops no other way to sign in.
func TestProviderAway(t *testing.T) {
	away := oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", ClientID: "weir", ClientSecret: "s", Name: "Acme Id", Clock: time.Now})
	s := openSite(t, password.ForTests(), away)
	got := s.browser("192.0.2.1").get(t, oidcPage)
	if got.status != 503 || !strings.Contains(got.body, "can&#39;t be reached") || !strings.Contains(got.body, `name="password"`) {
		t.Errorf("away: %d %s", got.status, got.body)
	}
}

// Without an identity provider there is nothing about it.
func TestNoProvider(t *testing.T) {
	b := openSite(t, password.ForTests(), nil).browser("192.0.2.1")
	if strings.Contains(b.get(t, signInPage).body, "oidc") {
		t.Error("the sign-in offers it")
	}
	for _, path := range []string{oidcPage, signin.OIDCCallbackPath + "?code=x&state=y"} {
		if got := b.get(t, path); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

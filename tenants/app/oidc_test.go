package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/app"
)

const oidcPage = "/console/sign-in/oidc"

// Members sign in by an identity provider.
func TestProvider(t *testing.T) {
	provider, err := mockoidc.Run()
	testenv.Must(t, err)
	t.Cleanup(func() { _ = provider.Shutdown() })
	w := newWorld(t)
	w.oidc = app.OIDCConfig{Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: httpapi.Secret(provider.ClientSecret), Name: "Acme Id <b>"}
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "ada@example.com", "viewer")
	t.Run("IdentityStays", func(t *testing.T) { testProviderIdentityStays(t, p, provider, acme) })
	t.Run("WhoAsksStopsNobodyElse", func(t *testing.T) { testWhoAsksStopsNobodyElse(t, p) })
}

// atProvider signs in at the identity provider, and returns its redirect.
func (b *browser) atProvider(t *testing.T, provider *mockoidc.MockOIDC, user mockoidc.MockUser) string {
	t.Helper()
	provider.QueueUser(&user)
	start := b.navigate(t, oidcPage+"?to=/console/settings/account")
	if start.status != 303 {
		t.Fatalf("start: %d %s", start.status, start.body)
	}
	return sentBack(t, start.header.Get("Location"))
}

// sentBack requests an address at the identity
// provider, and returns its redirect.
func sentBack(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(address)
	testenv.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	back, found := strings.CutPrefix(answer.Header.Get("Location"), "https://weir.example")
	if !found {
		t.Fatalf("the provider answers %d and sends to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	return back
}

// A member's identity at the provider is found once, by the verified
// address. From then on the address does not count: its next holder
// is refused, and a member who changes it stays the same member.
func testProviderIdentityStays(t *testing.T, p *process, provider *mockoidc.MockOIDC, of tenant) {
	acme := of.organization
	p.add(t, acme, "bob@example.com", "owner")
	n := p.world.follow(t)
	members := func() map[string]map[string]any {
		byEmail := map[string]map[string]any{}
		for _, m := range p.must(t, 200, "GET", "/v1/members?organization="+acme, "").items(t) {
			byEmail[m["email"].(string)] = m
		}
		return byEmail
	}
	come := func(subject, email string, verified bool) (*browser, page) {
		b := p.browser("192.0.2.1")
		back := b.atProvider(t, provider, mockoidc.MockUser{Subject: subject, Email: email, EmailVerified: verified})
		got := b.navigate(t, back)
		returned, err := url.Parse(back)
		testenv.Must(t, err)
		for _, hidden := range []string{provider.ClientSecret, returned.Query().Get("code"), returned.Query().Get("state")} {
			if strings.Contains(p.world.log.String(), hidden) {
				t.Errorf("%q is logged", hidden)
			}
		}
		return b, got
	}
	isAda := func(when, subject, email string, verified bool) {
		t.Helper()
		b, got := come(subject, email, verified)
		n.awaitLookup(t, b.Session(), nil)
		if shown := b.get(t, accountPage).body; got.status != 303 || !strings.Contains(shown, "ada@example.com") || strings.Contains(shown, "bob@example.com") {
			t.Errorf("%s: %d %s", when, got.status, got.body)
		}
	}
	isNot := func(when, subject, email, says string) {
		t.Helper()
		if b, got := come(subject, email, true); got.status != 422 || b.Session() != "" || !strings.Contains(got.text(), says) {
			t.Errorf("%s: %d %s", when, got.status, got.text())
		}
	}
	isAda("the first time", "ada", "ada@example.com", true)
	if m := members(); m["ada@example.com"]["email_verified"] != true || m["bob@example.com"]["email_verified"] != false {
		t.Errorf("the members: %v", m)
	}
	isAda("with an address that is not verified any more", "ada", "ada@example.com", false)
	isAda("with the address of another member", "ada", "bob@example.com", true)
	isNot("who got the address", "eve", "ada@example.com", "somebody else at Acme Id")
	id := members()["ada@example.com"]["id"].(string)
	reset := map[string]string{"code": p.must(t, 201, "POST", "/v1/members/"+id+"/reset-code", "").get("code"), "password": "battery staple horse"}
	if got := p.browser("192.0.2.2").post(t, "/console/reset", reset); got.status != 303 {
		t.Fatalf("reset: %d %s", got.status, got.body)
	}
	isNot("after a reset, by the name of before alone", "ada", "gone@example.com", "no member here")
	isAda("after a reset", "ada-2", "ada@example.com", true)
	p.must(t, 200, "POST", "/v1/members/"+id+"/remove", "")
	isNot("who was removed", "ada-2", "ada@example.com", "no member here")
	p.add(t, acme, "ada@example.com", "viewer")
	isAda("who is a member again", "ada-2", "ada@example.com", true)
}

// An invalid setting is refused with a remedy, and never shows the secret.
func TestProviderSettings(t *testing.T) {
	good := app.OIDCConfig{Issuer: "https://id.example", ClientID: "weir", ClientSecret: "hunter2"}
	for name, c := range map[string]struct {
		change func(*app.Config)
		says   string
	}{
		"as it should be":     {func(*app.Config) {}, ""},
		"in clear":            {func(c *app.Config) { c.OIDC.Issuer = "http://id.example" }, "WEIR_OIDC_ISSUER"},
		"no client":           {func(c *app.Config) { c.OIDC.ClientID = "" }, "WEIR_OIDC_CLIENT_ID"},
		"no secret":           {func(c *app.Config) { c.OIDC.ClientSecret = "" }, "WEIR_OIDC_CLIENT_SECRET"},
		"nowhere to go back":  {func(c *app.Config) { c.ConsoleOrigin = "" }, "WEIR_CONSOLE_ORIGIN"},
		"a path as an origin": {func(c *app.Config) { c.ConsoleOrigin = "https://weir.example/console" }, "WEIR_CONSOLE_ORIGIN"},
	} {
		config := app.Config{
			Config:      service.Config{Servers: service.Servers{Brokers: []string{"b:1"}, DatabaseURL: httpapi.Secret("postgres://x")}},
			InForceWait: time.Second, ConsoleOrigin: "https://weir.example", OIDC: good, Leaks: app.LeakConfig{KeysURL: "https://x.example"},
		}
		c.change(&config)
		err := config.Validate()
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

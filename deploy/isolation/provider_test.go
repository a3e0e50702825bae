package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	tenants "github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/passkeytest"
)

// ticketCookie identifies the browser's open challenge: for a passkey,
// or for an identity provider's token.
const ticketCookie = "__Host-weir-challenge"

// providerKnows is the address that the world's identity provider has verified.
const providerKnows = "provided@example.com"

// withProvider adds an identity provider to a world.
func withProvider(t *testing.T) (*mockoidc.MockOIDC, func(*allinone.Modules)) {
	t.Helper()
	provider, err := mockoidc.Run()
	must(t, err)
	t.Cleanup(func() { _ = provider.Shutdown() })
	return provider, func(set *allinone.Modules) {
		set.Tenants.OIDC = tenants.OIDCConfig{Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: httpapi.Secret(provider.ClientSecret), Name: "Id"}
	}
}

// A visitor is a browser that keeps its cookies.
type visitor struct {
	world   *world
	answers *journal
	cookies map[string]*http.Cookie
	tickets []canary
}

// visit sends a request as the console's pages do, and keeps the
// cookies it gets.
func (v *visitor) visit(t *testing.T, method, path string, form url.Values) answer {
	t.Helper()
	r := request{method: method, path: path, body: form.Encode(), header: map[string]string{"Sec-Fetch-Site": "same-origin"}}
	for _, cookie := range v.cookies {
		r.cookies = append(r.cookies, cookie)
	}
	got := v.world.send(t, r)
	if got.status >= http.StatusBadRequest { // what leads on sets the cookies that it has to
		fmt.Fprintln(v.answers, got.status, got.header, got.text)
	}
	for _, cookie := range got.cookies {
		v.cookies[cookie.Name] = cookie
		if cookie.Name == ticketCookie && cookie.Value != "" {
			v.tickets = append(v.tickets, canary{"a ticket of " + path, cookie.Value})
		}
	}
	return got
}

// byProvider signs a user in by the identity provider, and tries the
// same answer again, which is refused. It returns the secrets used.
func (w *world) byProvider(t *testing.T, answers *journal, of *tenant, provider *mockoidc.MockOIDC) []canary {
	t.Helper()
	of.member(t, "viewer", providerKnows)
	provider.QueueUser(&mockoidc.MockUser{Subject: "x", Email: providerKnows, EmailVerified: true})
	v := &visitor{world: w, answers: answers, cookies: map[string]*http.Cookie{}}
	asked := v.visit(t, "GET", "/console/sign-in/oidc", nil).header.Get("Location")
	back, found := strings.CutPrefix(sentBack(t, asked), "https://weir.example")
	if !found {
		t.Fatalf("the provider sends back to %q", back)
	}
	ticket := v.cookies[ticketCookie]
	if got := v.visit(t, "GET", back, nil); got.status != http.StatusSeeOther {
		t.Fatalf("GET %s: %d %s", back, got.status, got.brief())
	}
	session := v.cookies[identity.SessionCookie].Value
	v.cookies[ticketCookie] = ticket
	if got := v.visit(t, "GET", back, nil); got.status != http.StatusUnprocessableEntity {
		t.Errorf("the same answer again: %d %s", got.status, got.brief())
	}
	question, err := url.Parse(asked)
	must(t, err)
	reply, err := url.Parse(back)
	must(t, err)
	return append(v.tickets, canary{"the client's secret at the provider", provider.ClientSecret}, canary{"a session by the provider", session},
		canary{"the provider's code", reply.Query().Get("code")}, canary{"the state for the provider", question.Query().Get("state")},
		canary{"the nonce for the provider", question.Query().Get("nonce")})
}

// sentBack requests an address of the identity provider, and
// returns its redirect.
func sentBack(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Get(address)
	must(t, err)
	must(t, got.Body.Close())
	return got.Header.Get("Location")
}

// challengeOf returns the challenge for a passkey.
func challengeOf(t *testing.T, question string) string {
	t.Helper()
	var asked struct {
		PublicKey struct{ Challenge string }
	}
	must(t, json.Unmarshal([]byte(question), &asked))
	if asked.PublicKey.Challenge == "" {
		t.Fatalf("no challenge in %s", question)
	}
	return asked.PublicKey.Challenge
}

// byPasskey adds a passkey to a user's account, signs in by it, and
// tries the same answer again, which is refused. It returns the
// secrets: challenges, their tickets, and the proofs.
func (w *world) byPasskey(t *testing.T, answers *journal, of *tenant) (secrets []canary) {
	t.Helper()
	const passkeys, signIn = "/console/settings/account/passkeys", "/console/sign-in/passkey"
	v := &visitor{world: w, answers: answers, cookies: map[string]*http.Cookie{identity.SessionCookie: w.memberOf(t, of, "owner").cookies[0]}}
	options := v.visit(t, "POST", passkeys+"/options", nil).text
	laptop, made := passkeytest.New(t, options)
	if got := v.visit(t, "POST", passkeys, url.Values{"name": {"Laptop"}, "credential": {made}}); got.status != http.StatusSeeOther {
		t.Fatalf("add a passkey: %d %s", got.status, got.brief())
	}
	delete(v.cookies, identity.SessionCookie)
	question := v.visit(t, "POST", signIn+"/options", nil).text
	proof := url.Values{"credential": {laptop.Answer(t, passkeytest.Site, question)["credential"]}}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnprocessableEntity} {
		ticket := v.cookies[ticketCookie]
		if got := v.visit(t, "POST", signIn, proof); got.status != want {
			t.Fatalf("sign in by a passkey: %d %s, want %d", got.status, got.brief(), want)
		}
		v.cookies[ticketCookie] = ticket
	}
	v.visit(t, "POST", signIn+"/options", nil) // that nobody answers
	return append(v.tickets, canary{"a session by a passkey", v.cookies[identity.SessionCookie].Value},
		canary{"the question for a new passkey", challengeOf(t, options)}, canary{"the question for a passkey", challengeOf(t, question)},
		canary{"a proof by a passkey", signatureOf(t, proof.Get("credential"))})
}

// signatureOf returns the proof in an authenticator's answer that it
// has a passkey.
func signatureOf(t *testing.T, credential string) string {
	t.Helper()
	var proof struct{ Response struct{ Signature string } }
	must(t, json.Unmarshal([]byte(credential), &proof))
	return proof.Response.Signature
}

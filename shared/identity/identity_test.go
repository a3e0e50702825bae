package identity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func secret(prefix, digit string) string { return prefix + strings.Repeat(digit, 48) }

// known is a set of an active, a revoked and an expired API key and
// two service tokens.
func known(t *testing.T) *identity.Credentials {
	t.Helper()
	credentials := identity.NewCredentials(func() time.Time { return now })
	add := func(secret string, credential contract.Credential) {
		value, _ := json.Marshal(credential)
		testenv.Must(t, credentials.Apply(contract.CredentialKey(secret), value))
	}
	key := contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1",
		Environment: "prod", State: contract.CredentialActive, Version: 2}
	add(secret("weir_", "a"), key)
	revoked, expired := key, key
	revoked.State = contract.CredentialRevoked
	expired.ExpiresAt = &now
	add(secret("weir_", "b"), revoked)
	add(secret("weir_", "c"), expired)
	add(secret("weirsvc_", "d"), contract.Credential{Kind: contract.CredentialServiceToken, ID: "svc_1", Organization: "org_1",
		State: contract.CredentialActive, Scopes: []string{"billing:read"}})
	return credentials
}

// guard returns a guard that is ready at once.
func guard(credentials *identity.Credentials) *identity.Guard {
	return identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: func() time.Time { return now }})
}

func TestRequireAPIKey(t *testing.T) {
	credentials := known(t)
	cases := []struct{ name, key, code string }{
		{"active", secret("weir_", "a"), ""},
		{"none", "", "missing_api_key"},
		{"unknown", secret("weir_", "e"), "invalid_api_key"},
		{"malformed", "weir_short", "invalid_api_key"},
		{"a service token", secret("weirsvc_", "d"), "invalid_api_key"},
		{"revoked", secret("weir_", "b"), "api_key_revoked"},
		{"expired at this very moment", secret("weir_", "c"), "api_key_expired"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header.Set("X-Api-Key", c.key)
			check(t, guard(credentials).RequireAPIKey(), request, c.code, "ApiKey")
		})
	}
}

// A key that came as a bearer token is refused, and says where it belongs.
func TestRequireAPIKeyFindsBearer(t *testing.T) {
	for token, want := range map[string]string{secret("weir_", "a"): "without Bearer", secret("weirsvc_", "d"): "There is no API key"} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		_, err := identity.APIKeyOf(request.Header)
		if err == nil {
			_, err = identity.APIKey(known(t), "")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.8s: %v, want %q", token, err, want)
		}
	}
}

// Two different keys are refused, though one of them is valid.
func TestRequireAPIKeyRefusesTwo(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header["X-Api-Key"] = []string{secret("weir_", "a"), secret("weir_", "e")}
	check(t, guard(known(t)).RequireAPIKey(), request, "invalid_request", "")
}

func TestRequireScope(t *testing.T) {
	credentials := known(t)
	token := "Bearer " + secret("weirsvc_", "d")
	cases := []struct{ name, authorization, scope, code string }{
		{"with the scope", token, "billing:read", ""},
		{"without it", token, "tenants:admin", "forbidden"},
		{"no token", "", "billing:read", "missing_token"},
		{"another scheme", "Basic abc", "billing:read", "missing_token"},
		{"unknown", "Bearer " + secret("weirsvc_", "0"), "billing:read", "invalid_token"},
		{"an API key", "Bearer " + secret("weir_", "a"), "billing:read", "invalid_token"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header.Set("Authorization", c.authorization)
			check(t, guard(credentials).RequireScope(c.scope), request, c.code, "Bearer")
		})
	}
}

// check sends request through the middleware: code "" means that it
// passes, with its principal.
func check(t *testing.T, require func(http.Handler) http.Handler, request *http.Request, code, scheme string) {
	t.Helper()
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.With(require).Get("/", func(_ http.ResponseWriter, r *http.Request) {
		if got := identity.FromContext(r.Context()).Organization; got != "org_1" {
			t.Errorf("organization = %q, want org_1", got)
		}
	})
	recorder := httptest.NewRecorder()
	router.ServeHTTP(recorder, request)
	var problem struct{ Code string }
	_ = json.Unmarshal(recorder.Body.Bytes(), &problem)
	if problem.Code != code {
		t.Errorf("code = %q, want %q", problem.Code, code)
	}
	if recorder.Code == http.StatusUnauthorized && recorder.Header().Get("WWW-Authenticate") != scheme {
		t.Errorf("WWW-Authenticate = %q, want %q", recorder.Header().Get("WWW-Authenticate"), scheme)
	}
}

// Records may be read again and out of date: an older state never
// revives a revoked key.
func TestCredentialsIgnoreOlderStates(t *testing.T) {
	credentials := identity.NewCredentials(func() time.Time { return now })
	apply := func(state string, version int64) {
		value, _ := json.Marshal(contract.Credential{State: state, Version: version})
		testenv.Must(t, credentials.Apply(contract.CredentialKey("k"), value))
	}
	apply(contract.CredentialActive, 1)
	apply(contract.CredentialRevoked, 2)
	apply(contract.CredentialActive, 1)
	if _, err := credentials.Lookup("k"); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("Lookup = %v, want ErrRevoked", err)
	}
	testenv.Must(t, credentials.Apply(contract.CredentialKey("k"), nil))
	if _, err := credentials.Lookup("k"); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("after its tombstone Lookup = %v, want ErrUnknown", err)
	}
}

func TestDirectory(t *testing.T) {
	directory := identity.NewDirectory()
	testenv.Must(t, directory.Apply(contract.TypeProjectCreated, []byte(`{"organization":"org_1","project":"prj_1"}`)))
	testenv.Must(t, directory.Apply(contract.TypeKeyUsed, []byte(`not even read`)))
	if organization, known := directory.Organization("prj_1"); organization != "org_1" || !known {
		t.Errorf("Organization(prj_1) = %q, %t", organization, known)
	}
	if _, known := directory.Organization("prj_2"); known {
		t.Error("an unknown project is known")
	}
}

// A directory names organizations and keys: the keys of an organization
// only to itself, and nothing that is hidden or gone.
func TestDirectoryNames(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(kind, value string) {
		testenv.Must(t, directory.Apply(kind, []byte(value)))
	}
	apply(contract.TypeOrganizationCreated, `{"organization":"org_1","name":"Acme"}`)
	apply(contract.TypeOrganizationRenamed, `{"organization":"org_1","name":"Acme & Co"}`)
	for range 2 { // read again
		apply(contract.TypeAPIKeyIssued, `{"organization":"org_1","project":"prj_1","api_key":"key_1","name":"pods","environment":"prod"}`)
		apply(contract.TypeAPIKeyIssued, `{"organization":"org_1","project":"prj_2","api_key":"key_2","name":"laptop","environment":"dev"}`)
		apply(contract.TypeAPIKeyChanged, `{"organization":"org_1","project":"prj_2","api_key":"key_2","name":"new laptop"}`)
		apply(contract.TypeAPIKeyRevoked, `{"organization":"org_1","project":"prj_1","api_key":"key_1"}`)
	}
	if name, unknown := directory.OrganizationName("org_1"), directory.OrganizationName("org_9"); name != "Acme & Co" || unknown != "org_9" {
		t.Errorf("organizations are called %q, %q", name, unknown)
	}
	if keys := directory.Keys("org_1"); len(keys) != 1 || keys[0] != (identity.Key{ID: "key_2", Name: "new laptop", Project: "prj_2", Environment: "dev"}) {
		t.Errorf("keys = %+v", keys)
	}
	if key, known := directory.Key("org_1", "key_1"); !known || key.Name != "pods" || !key.Revoked {
		t.Errorf("the revoked key is %+v, %t", key, known)
	}
	if key, known := directory.Key("org_2", "key_1"); known {
		t.Errorf("another organization is told %+v", key)
	}
	apply(contract.TypeDeletionRequested, `{"organization":"org_1","project":"prj_2"}`)
	if key, known := directory.Key("org_1", "key_2"); known || len(directory.Keys("org_1")) != 0 {
		t.Errorf("the key of a hidden project is %+v", key)
	}
	apply(contract.TypeDeletionCancelled, `{"organization":"org_1","project":"prj_2"}`)
	apply(contract.TypeDeletionBegun, `{"organization":"org_1","project":"prj_1"}`)
	if _, known := directory.Key("org_1", "key_1"); known || len(directory.Keys("org_1")) != 1 {
		t.Error("the key of a deleted project has a name")
	}
	apply(contract.TypeDeletionBegun, `{"organization":"org_1"}`)
	apply(contract.TypeDeletionFinished, `{"organization":"org_1"}`)
	if name := directory.OrganizationName("org_1"); name != "org_1" || len(directory.Keys("org_1")) != 0 {
		t.Errorf("the deleted organization is called %q, its keys %+v", name, directory.Keys("org_1"))
	}
}

// A directory knows the members of an organization who may read something, as
// long as they are there.
func TestDirectoryMembers(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(kind, value string) {
		testenv.Must(t, directory.Apply(kind, []byte(value)))
	}
	for range 2 { // read again
		apply(contract.TypeMemberAdded, `{"organization":"org_1","member":"mem_1","name":"Bob","role":"billing"}`)
		apply(contract.TypeMemberAdded, `{"organization":"org_1","member":"mem_2","name":"Ada","role":"viewer"}`)
		apply(contract.TypeMemberAdded, `{"organization":"org_2","member":"mem_3","name":"Eve","role":"owner"}`)
	}
	expect := func(when, want string) {
		t.Helper()
		var names []string
		for _, m := range directory.MembersThatRead("org_1", identity.ReadErrors) {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		if n := directory.CountThatRead("org_1", identity.ReadErrors, func(m identity.Member) bool { return m.Name == "Ada" }); n != strings.Count(want, "Ada") {
			t.Errorf("%s: %d are called Ada", when, n)
		}
	}
	expect("at first", "Ada")
	apply(contract.TypeMemberRoleChanged, `{"organization":"org_1","member":"mem_1","role":"developer"}`)
	expect("after another role", "Ada Bob")
	apply(contract.TypeMemberRemoved, `{"organization":"org_1","member":"mem_2"}`)
	apply(contract.TypeMemberRoleChanged, `{"organization":"org_1","member":"mem_2","role":"owner"}`)
	expect("after a removal", "Bob")
	apply(contract.TypeDeletionBegun, `{"organization":"org_1"}`)
	expect("when the organization is deleted", "")
	for i := range 2100 {
		apply(contract.TypeMemberAdded, fmt.Sprintf(`{"organization":"org_1","member":"mem_%d","role":"owner"}`, i))
	}
	if n := len(directory.MembersThatRead("org_1", identity.ReadErrors)); n != 2000 {
		t.Errorf("%d members are kept", n)
	}
}

// A directory knows an organization's webhooks as they are now, and no others.
func TestDirectoryWebhooks(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(kind, value string) {
		testenv.Must(t, directory.Apply(kind, []byte(value)))
	}
	for range 2 { // read again
		apply(contract.TypeWebhookChanged, `{"organization":"org_1","webhook":"whk_1","host":"b.example","events":["error_alert.fired"],"on":true}`)
		apply(contract.TypeWebhookChanged, `{"organization":"org_1","webhook":"whk_2","host":"a.example","events":[],"on":true}`)
		apply(contract.TypeWebhookChanged, `{"organization":"org_2","webhook":"whk_3","host":"c.example","events":[],"on":true}`)
	}
	expect := func(when, want string) {
		t.Helper()
		var got []string
		for _, w := range directory.Webhooks("org_1") {
			got = append(got, fmt.Sprint(w.ID, w.Host, w.Events, w.On))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("at first", "whk_2a.example[] true whk_1b.example[error_alert.fired] true")
	apply(contract.TypeWebhookChanged, `{"organization":"org_1","webhook":"whk_2","host":"z.example","events":["quota.exhausted"],"on":false}`)
	expect("when one was changed", "whk_1b.example[error_alert.fired] true whk_2z.example[quota.exhausted] false")
	if _, known := directory.Webhook("org_1", "whk_3"); known {
		t.Error("a foreign one is known")
	}
	apply(contract.TypeWebhookDeleted, `{"organization":"org_1","webhook":"whk_1"}`)
	if _, known := directory.Webhook("org_1", "whk_1"); known {
		t.Error("a deleted one is known")
	}
	apply(contract.TypeDeletionBegun, `{"organization":"org_1"}`)
	expect("when the organization is deleted", "")
	for i := range identity.MaxWebhooks + 10 {
		apply(contract.TypeWebhookChanged, fmt.Sprintf(`{"organization":"org_1","webhook":"whk_%d"}`, i))
	}
	if n := len(directory.Webhooks("org_1")); n != identity.MaxWebhooks {
		t.Errorf("%d webhooks are kept", n)
	}
}

// An organization that rotates its keys for years has names of its
// newest ones alone.
func TestDirectoryBoundsKeys(t *testing.T) {
	directory := identity.NewDirectory()
	for i := range 2100 {
		testenv.Must(t, directory.Apply(contract.TypeAPIKeyIssued, fmt.Appendf(nil, `{"organization":"org_1","project":"prj_1","api_key":"key_%d"}`, i)))
	}
	_, oldest := directory.Key("org_1", "key_0")
	if _, newest := directory.Key("org_1", "key_2099"); oldest || !newest || len(directory.Keys("org_1")) != 2000 {
		t.Errorf("the oldest is known: %t, the newest: %t, of %d", oldest, newest, len(directory.Keys("org_1")))
	}
}

// A directory lists the projects of one organization by name, each once
// however often it is published.
func TestDirectoryProjects(t *testing.T) {
	directory := identity.NewDirectory()
	for _, fact := range []string{
		`{"organization":"org_1","project":"prj_2","name":"Shop"}`, `{"organization":"org_1","project":"prj_1","name":"Cart"}`,
		`{"organization":"org_2","project":"prj_3","name":"Other"}`, `{"organization":"org_1","project":"prj_2","name":"Shop"}`,
	} {
		testenv.Must(t, directory.Apply(contract.TypeProjectCreated, []byte(fact)))
	}
	if got := directory.Projects("org_1"); len(got) != 2 || got[0].Project != "prj_1" || got[1].Name != "Shop" {
		t.Errorf("projects = %+v", got)
	}
	if name, unknown := directory.Name("prj_1"), directory.Name("prj_9"); name != "Cart" || unknown != "prj_9" {
		t.Errorf("names = %q, %q", name, unknown)
	}
	for _, renamed := range []string{`{"organization":"org_1","project":"prj_1","name":"Basket"}`, `{"organization":"org_1","project":"prj_9","name":"None"}`} {
		testenv.Must(t, directory.Apply(contract.TypeProjectRenamed, []byte(renamed)))
	}
	if name, unknown := directory.Name("prj_1"), directory.Name("prj_9"); name != "Basket" || unknown != "prj_9" {
		t.Errorf("after the project was renamed: names = %q, %q", name, unknown)
	}
}

// All credentials of an organization or a project are refused at once,
// and later restored unchanged.
func TestHolders(t *testing.T) {
	credentials := identity.NewCredentials(func() time.Time { return now })
	apply := func(key, kind string, value any) {
		encoded, err := json.Marshal(value)
		testenv.Must(t, err)
		record := bus.Record{Key: []byte(key), Value: encoded, Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(kind)}}}
		testenv.Must(t, credentials.Consume(record))
	}
	for secret, project := range map[string]string{"a": "prj_1", "b": "prj_2"} {
		apply(contract.CredentialKey(secret), contract.TypeCredentialChanged,
			contract.Credential{Kind: contract.CredentialAPIKey, Organization: "org_1", Project: project, State: contract.CredentialActive, Version: 1})
	}
	for _, step := range []struct {
		organization, project, state string
		version                      int64
		a, b                         error
	}{
		{"org_1", "prj_1", contract.CredentialRevoked, 1, identity.ErrRevoked, nil},
		{"org_1", "", contract.CredentialRevoked, 1, identity.ErrRevoked, identity.ErrRevoked},
		{"org_1", "", contract.CredentialActive, 2, identity.ErrRevoked, nil},
		{"org_1", "prj_1", contract.CredentialActive, 2, nil, nil},
		{"org_1", "prj_1", contract.CredentialRevoked, 1, nil, nil}, // read again
	} {
		apply(contract.HolderKey(step.organization, step.project), contract.TypeHolderChanged,
			contract.Holder{Organization: step.organization, Project: step.project, State: step.state, Version: step.version})
		for secret, want := range map[string]error{"a": step.a, "b": step.b} {
			if _, err := credentials.Lookup(secret); !errors.Is(err, want) {
				t.Errorf("%+v: %s is answered %v, want %v", step, secret, err, want)
			}
			if _, ended := credentials.Ended(secret); ended != (want != nil) {
				t.Errorf("%+v: %s has ended: %t", step, secret, ended)
			}
		}
	}
}

// A project that is deleted, or to be deleted, stays hidden whatever is
// read again; a restored one is as before.
func TestDirectoryHides(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(kind, value string) {
		testenv.Must(t, directory.Apply(kind, []byte(value)))
	}
	for _, project := range []string{"prj_1", "prj_2"} {
		apply(contract.TypeProjectCreated, `{"organization":"org_1","project":"`+project+`","name":"`+project+`'s name"}`)
	}
	const first = `{"organization":"org_1","project":"prj_1"}`
	for _, step := range []struct {
		kind, value string
		shown       int
	}{
		{contract.TypeDeletionRequested, first, 1},
		{contract.TypeDeletionRequested, first, 1},
		{contract.TypeDeletionCancelled, first, 2},
		{contract.TypeDeletionRequested, first, 1},
		{contract.TypeDeletionBegun, first, 1},
		{contract.TypeDeletionRequested, `{"organization":"org_1"}`, 0},
		{contract.TypeDeletionCancelled, `{"organization":"org_1"}`, 1},
		{contract.TypeDeletionBegun, `{"organization":"org_1"}`, 0},
	} {
		apply(step.kind, step.value)
		_, known := directory.Organization("prj_2")
		if got := directory.Projects("org_1"); len(got) != step.shown || known != (step.shown > 0) {
			t.Errorf("after %s of %s: %+v, the second is known: %t", step.kind, step.value, got, known)
		}
		hidden := directory.Hides("org_1", "prj_1")
		if hidden != directory.Hidden("org_1")["prj_1"] {
			t.Errorf("after %s of %s: hidden are %v", step.kind, step.value, directory.Hidden("org_1"))
		}
		if name := directory.Name("prj_1"); hidden && name != "prj_1" || !hidden && name == "prj_1" {
			t.Errorf("after %s of %s: hidden %t, called %q", step.kind, step.value, hidden, name)
		}
	}
	apply(contract.TypeDeletionFinished, `{"organization":"org_1"}`)
	if hidden := directory.Hidden("org_1"); len(hidden) != 0 || directory.Name("prj_1") != "prj_1" || directory.Owns("org_1", "prj_1") {
		t.Errorf("after the end: hidden are %v, the first is called %q", hidden, directory.Name("prj_1"))
	}
}

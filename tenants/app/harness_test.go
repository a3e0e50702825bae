package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/tenants/app"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// operatorToken is every test's operator.
const operatorToken = "weirsvc_0123456789abcdef0123456789abcdef0123456789abcdef"

// parallelTests is how many tests run at once without
// -parallel: more than there are cores, as they mostly wait.
const parallelTests = "6"

func TestMain(m *testing.M) {
	given := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", parallelTests)
	}
	os.Exit(m.Run())
}

// A world is what tenants needs: a database, a broker and a log.
type world struct {
	database string
	brokers  []string
	log      *journal

	inForceWait        time.Duration
	grace              time.Duration // of deletions
	oidc               app.OIDCConfig
	clock              func() time.Time // the system's where nil
	output             *bytes.Buffer    // gets the link for the first owner; nil: there is none
	bounds             app.BoundsConfig
	expensivePasswords bool // hash them as in production

	webhooks app.WebhookConfig

	loses bool   // its log loses records
	rests bool   // compares only when it has to
	begin string // names the start of the process; empty: it has no name

	leakKeys string // file with the keys that sign leak reports; empty: none are accepted
}

// newWorld makes a world for one test. The test runs in parallel where
// it has a broker of its own: it mostly waits.
func newWorld(t *testing.T) world {
	kafkatest.Parallel(t)
	return world{
		database: pgtest.URL(t, schema.Name, schema.Migrations()...), brokers: kafkatest.Brokers(t), log: &journal{},
		webhooks:    app.WebhookConfig{Keys: httpapi.Secret(strings.Repeat("5a", 32)), Networks: []string{"127.0.0.0/8"}},
		inForceWait: time.Minute, // a slow machine makes a test slow, not red
	}
}

// A watch is a clock that a test sets forward.
type watch struct{ ahead atomic.Int64 }

func (c *watch) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *watch) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// A journal keeps log lines. Safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// A process is one running replica.
type process struct {
	*app.App
	world   world
	address string       // that members sign in from
	checked http.Handler // its handler, held against its OpenAPI document
	stop    func()
}

// start starts a replica with the operator and waits until it is ready.
func (w world) start(t *testing.T, operator string) *process {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config := app.Config{
		Config:        service.Config{Servers: service.Servers{Brokers: w.brokers, DatabaseURL: httpapi.Secret(w.database)}, Clock: w.clock, Start: w.begin},
		OperatorToken: httpapi.Secret(operator), InForceWait: w.inForceWait, KeptConfig: app.KeptConfig{DeletionGrace: w.grace},
		ConsoleOrigin: "https://weir.example", OIDC: w.oidc, Bounds: w.bounds, Webhooks: w.webhooks,
		Leaks:      app.LeakConfig{Reports: w.leakKeys != "", KeysFile: w.leakKeys},
		TestConfig: app.TestConfig{CompareInterval: 200 * time.Millisecond, CheapPasswords: !w.expensivePasswords},
	}
	if w.rests {
		config.CompareInterval = time.Hour
	}
	if w.output != nil {
		config.Output = w.output
	}
	tenants, err := app.New(t.Context(), config, logger)
	testenv.Must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- tenants.Run(ctx) }()
	p := &process{App: tenants, world: w, address: "192.0.2.7", checked: openapitest.Handler(t, tenants.Handler()), stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the replica did not end in order: %v", err)
		}
	})}
	t.Cleanup(func() {
		p.stop()
		if !w.loses && strings.Contains(w.log.String(), "the log differed") {
			t.Errorf("what was published differs from the tables, though no log lost anything:\n%s", w.log)
		}
	})
	testenv.Eventually(t, tenants.Ready)
	return p
}

// An answer is the response to a request.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// get returns a text of the body, "" if it has none.
func (a answer) get(member string) string {
	text, _ := a.body[member].(string)
	return text
}

func (a answer) items(t *testing.T) []map[string]any {
	t.Helper()
	list, ok := a.body["items"].([]any)
	if !ok {
		t.Fatalf("no list: %s", a.text)
	}
	items := make([]map[string]any, len(list))
	for i, item := range list {
		items[i], _ = item.(map[string]any)
	}
	return items
}

type header struct{ name, value string }

// call sends a request with a service token, which may be empty.
func (p *process) call(t *testing.T, token, method, path, body string, headers ...header) answer {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		request.Header.Set(h.name, h.value)
	}
	recorder := httptest.NewRecorder()
	p.checked.ServeHTTP(recorder, request)
	got := answer{status: recorder.Code, header: recorder.Header(), text: recorder.Body.String()}
	if err := json.Unmarshal(recorder.Body.Bytes(), &got.body); err != nil {
		t.Fatalf("%s %s: the answer %q is no JSON object: %v", method, path, got.text, err)
	}
	return got
}

// must sends the operator's request, which must succeed with status.
func (p *process) must(t *testing.T, status int, method, path, body string, headers ...header) answer {
	t.Helper()
	got := p.call(t, operatorToken, method, path, body, headers...)
	if got.status != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got.status, got.text, status)
	}
	return got
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// A tenant is an organization with one of everything.
type tenant struct {
	organization, project, key, secret, tokenID, token string
}

func (p *process) tenant(t *testing.T, name string) tenant {
	t.Helper()
	var made tenant
	made.organization = p.must(t, 201, "POST", "/v1/organizations", text(map[string]any{"name": name, "tier": "indie"})).get("id")
	made.project = p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": made.organization, "name": "Shop"})).get("id")
	key := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": made.project, "environment": "prod", "name": "live"}))
	made.key, made.secret = key.get("id"), key.get("key")
	token := p.must(t, 201, "POST", "/v1/service-tokens", text(map[string]any{
		"organization": made.organization, "name": "admin", "scopes": []string{"tenants:admin", "billing:read"}}))
	made.tokenID, made.token = token.get("id"), token.get("token")
	return made
}

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

// shared are the tests that need no replica of their own, which takes longer to
// start than most of them: each has organizations and addresses of its own.
var shared = []struct {
	name string
	test func(*testing.T, *process)
}{
	{"AuditHasWhoAndWhat", testAuditHasWhoAndWhat},
	{"DeletionIsCancelled", testDeletionIsCancelled},
	{"GuessesDoNotLockOutAKnownDevice", testGuessesDoNotLockOutAKnownDevice},
	{"AttemptsWithCodesAreLimited", testAttemptsWithCodesAreLimited},
	{"OwnerLinkEndsWithTheFirstMember", testOwnerLinkEndsWithTheFirstMember},
	{"ExposedKeys", testExposedKeys},
	{"TierOfTheLedger", testTierOfTheLedger},
	{"Shapes", testShapes},
	{"RefusalsAtTheServer", testRefusalsAtTheServer},
	{"DeletedByCommand", testDeletedByCommand},
	{"NamesStayNames", testNamesStayNames},
	{"ADeviceIsItsMembersAlone", testADeviceIsItsMembersAlone},
	{"ABrowserOfSeveralMembers", testABrowserOfSeveralMembers},
	{"DevicesAreForgotten", testDevicesAreForgotten},
	{"CredentialsAreInForceEverywhere", testCredentialsAreInForceEverywhere},
	{"ExpiryIsPublished", testExpiryIsPublished},
	{"FactsArePublished", testFactsArePublished},
	{"ForgedHostsMakeNoLinks", testForgedHostsMakeNoLinks},
	{"HeldRequestsEndWithTheirCredential", testHeldRequestsEndWithTheirCredential},
	{"Invitations", testInvitations},
	{"InvitingDisclosesNoMemberElsewhere", testInvitingDisclosesNoMemberElsewhere},
	{"Members", testMembers},
	{"RemovedMembersAreOut", testRemovedMembersAreOut},
	{"RolesAreInForceAtOnce", testRolesAreInForceAtOnce},
	{"OpenAPIMatchesRoutes", testOpenAPIMatchesRoutes},
	{"RevocationWaitsForNobody", testRevocationWaitsForNobody},
	{"ResetRemovesPasskeys", testResetRemovesPasskeys},
	{"CopiesOfPasskeysAreFound", testCopiesOfPasskeysAreFound},
	{"PasskeysAreUnique", testPasskeysAreUnique},
	{"PasswordsOff", testPasswordsOff},
	{"CodesLetInWherePasswordsAreOff", testCodesLetInWherePasswordsAreOff},
	{"CodesDiscloseToTheirHolderOnly", testCodesDiscloseToTheirHolderOnly},
	{"CodesGoWithTheOperator", testCodesGoWithTheOperator},
	{"CodesGoWithTheirIssuer", testCodesGoWithTheirIssuer},
	{"Rotation", testRotation},
	{"AccessOfKeys", testAccessOfKeys},
	{"Refusals", testRefusals},
	{"Pages", testPages},
	{"IdempotencyKey", testIdempotencyKey},
}

func TestShared(t *testing.T) {
	w := newWorld(t)
	w.grace, w.output = time.Hour, &bytes.Buffer{}
	p := w.start(t, operatorToken)
	for i, s := range shared {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			own := *p
			own.address = fmt.Sprintf("198.18.0.%d", i) // attempts are limited by it
			own.checked = openapitest.Handler(t, p.Handler())
			s.test(t, &own)
		})
	}
}

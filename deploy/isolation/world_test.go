package isolation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/gateway"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	tenants "github.com/weirlog/weir/tenants/app"
)

// operatorToken of every world.
const operatorToken = "weirsvc_0123456789abcdef0123456789abcdef0123456789abcdef"

// webhookKey derives the secrets of webhooks.
const webhookKey = "5a17c0de5a17c0de5a17c0de5a17c0de5a17c0de5a17c0de5a17c0de5a17c0de"

// A module is what all four have in common.
type module interface {
	Handler() http.Handler
	Ready() error
	Behind() []httpapi.Backlog
	Run(ctx context.Context) error
}

// A world is a whole installation in this process: the four modules
// behind the gateway, a database and a broker.
type world struct {
	modules  map[gateway.Module]module
	gateway  *gateway.Gateway
	checked  http.Handler // the gateway, held against its OpenAPI document
	brokers  []string
	database string
	pool     *pgxpool.Pool
	log      *journal // the log of all modules
	metrics  *telemetry.Registry
	output   *journal // the standard output of tenants: links for the operator
	state    string   // directory of what modules keep of each other
	stop     func()   // stops the modules, as the test's end does
}

// A journal keeps what is written to it. Safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// newWorldOn starts an installation on a database, with its own
// settings, and waits until it is ready.
func newWorldOn(t *testing.T, database string, adjust func(*allinone.Modules)) *world {
	t.Helper()
	return newWorldAt(t, kafkatest.Brokers(t), database, adjust)
}

// newWorldAt is newWorldOn with the test's own brokers.
func newWorldAt(t *testing.T, brokers []string, database string, adjust func(*allinone.Modules)) *world {
	t.Helper()
	w := builtWorld(t, brokers, database, adjust)
	w.start(t)
	return w
}

// start runs the modules, and waits until they are ready.
func (w *world) start(t *testing.T) {
	t.Helper()
	var stops []func()
	for name, module := range w.modules {
		stops = append(stops, run(t, name, module))
	}
	w.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	testenv.Eventually(t, func() error {
		_, err := w.gateway.Ready(t.Context())
		return err
	})
}

// builtWorld is an installation of which nothing runs yet.
func builtWorld(t *testing.T, brokers []string, database string, adjust func(*allinone.Modules)) *world {
	t.Helper()
	w := &world{database: database, brokers: brokers, log: &journal{}, metrics: telemetry.New(), output: &journal{}, state: t.TempDir()}
	t.Cleanup(func() {
		if log := w.log.String(); t.Failed() {
			t.Logf("the log ends with\n%s", log[max(0, len(log)-8<<10):])
		}
	})
	logger := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.modules = w.build(t, logger, adjust)
	backends := map[gateway.Module]gateway.Backend{}
	for name, module := range w.modules {
		backends[name] = gateway.Local(module.Handler(), module.Ready, module.Behind)
	}
	var err error
	w.gateway, err = gateway.New(backends, nil, logger, time.Now)
	testenv.Must(t, err)
	w.checked = openapitest.Handler(t, w.gateway)
	w.pool, err = pg.Open(t.Context(), w.database, "tenants")
	testenv.Must(t, err)
	t.Cleanup(w.pool.Close)
	return w
}

func (w *world) build(t *testing.T, logger *slog.Logger, adjust func(*allinone.Modules)) map[gateway.Module]module {
	t.Helper()
	set, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	for _, config := range []*service.Config{&set.Ingest.Config, &set.Ledger.Config, &set.Grouping.Config, &set.Tenants.Config} {
		config.DatabaseURL, config.Brokers, config.StateDir = httpapi.Secret(w.database), w.brokers, w.state
		config.Telemetry.Registry = w.metrics
	}
	set.Tenants.OperatorToken, set.Tenants.InForceWait, set.Tenants.ConsoleOrigin = operatorToken, time.Minute, "https://weir.example"
	set.Ingest.Saved.SavedSearches, set.Ingest.Saved.Alerts = 10_000, 10_000                     // the same
	set.Grouping.MaxAlerts = 10_000                                                              // the same
	set.Tenants.Webhooks.Keys, set.Tenants.Bounds.MaxWebhooks = httpapi.Secret(webhookKey), 1000 // tests make one for each call
	set.Tenants.Output, set.Tenants.CheapPasswords = w.output, true
	set.Ingest.Tail.TailTime = 10 * time.Millisecond // of each that is asked for
	adjust(&set)
	modules := map[gateway.Module]module{}
	modules[gateway.Tenants], err = tenants.New(t.Context(), set.Tenants, logger)
	testenv.Must(t, err)
	modules[gateway.Ingest], err = ingest.New(t.Context(), set.Ingest, logger)
	testenv.Must(t, err)
	modules[gateway.Ledger], err = ledger.New(t.Context(), set.Ledger, logger)
	testenv.Must(t, err)
	modules[gateway.Grouping], err = grouping.New(t.Context(), set.Grouping, logger)
	testenv.Must(t, err)
	return modules
}

// run runs a module until the test ends or stop is called.
func run(t *testing.T, name gateway.Module, module module) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- module.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s did not end in order: %v", name, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// A request to send.
type request struct {
	method, path string // the path with its query
	body         string
	header       map[string]string
	cookies      []*http.Cookie
}

// An answer to a request.
type answer struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	text    string
}

// get returns a text member of a JSON body; "" if it has none of that name.
func (a answer) get(member string) string {
	var body map[string]any
	_ = json.Unmarshal([]byte(a.text), &body)
	text, _ := body[member].(string)
	return text
}

// brief returns the beginning of the body.
func (a answer) brief() string { return a.text[:min(len(a.text), 300)] }

// send sends a request through the gateway, from an unused address:
// limits per client are tested elsewhere. It retries a 429: the tests
// send more requests for one organization than members would.
func (w *world) send(t *testing.T, r request) (a answer) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if a = w.sendOnce(t, r); a.status == http.StatusTooManyRequests && strings.Contains(a.text, "reads") {
			return fmt.Errorf("%s %s: %s", r.method, r.path, a.brief())
		}
		return nil
	})
	return a
}

func (w *world) sendOnce(t *testing.T, r request) answer {
	t.Helper()
	sent := httptest.NewRequestWithContext(t.Context(), r.method, "https://weir.example"+r.path, strings.NewReader(r.body))
	sent.RemoteAddr = fmt.Sprintf("198.%d.%d.%d:40000", 18+rand.N(2), rand.N(256), rand.N(256))
	if r.body != "" {
		sent.Header.Set("Content-Type", contentType(r))
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	for _, cookie := range r.cookies {
		sent.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	w.checked.ServeHTTP(recorder, sent)
	result := recorder.Result()
	text, err := io.ReadAll(result.Body)
	testenv.Must(t, err)
	return answer{result.StatusCode, result.Header, result.Cookies(), string(text)}
}

// contentType of a body: JSON for the API, a form for the console.
func contentType(r request) string {
	if strings.HasPrefix(r.path, "/console") && !strings.HasPrefix(r.body, "{") {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}

// operate sends a request as the operator, which must succeed.
func (w *world) operate(t *testing.T, method, path string, body map[string]any) answer {
	t.Helper()
	var encoded []byte
	if body != nil {
		var err error
		encoded, err = json.Marshal(body)
		testenv.Must(t, err)
	}
	got := w.send(t, request{method: method, path: path, body: string(encoded), header: map[string]string{"Authorization": "Bearer " + operatorToken}})
	if got.status/100 != 2 {
		t.Fatalf("%s %s %s: got %d %s", method, path, encoded, got.status, got.text)
	}
	return got
}

// events counts the audit events of an organization. A refusal adds none.
func (w *world) events(t *testing.T, organization string) int {
	t.Helper()
	return len(w.history(t, organization))
}

// history names the audit events of an organization, the oldest first, without those
// that grouping reports, some time after the request.
func (w *world) history(t *testing.T, organization string) (names []string) {
	t.Helper()
	testenv.Must(t, pg.ReadAs(t.Context(), w.pool, pg.Organization(organization), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT name FROM events WHERE name <> 'tenants.v1.change_reported' ORDER BY position`)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	return names
}

// routes returns all routes of all modules and of the gateway, such as
// "GET /v1/logs", each once, with its modules.
func (w *world) routes(t *testing.T) map[string][]gateway.Module {
	t.Helper()
	found := map[string][]gateway.Module{}
	visit := func(owner gateway.Module, handler http.Handler) {
		tree, ok := handler.(chi.Routes)
		if !ok {
			t.Fatalf("the handler %T of %q has no routes to walk", handler, owner)
		}
		testenv.Must(t, chi.Walk(tree, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			found[method+" "+route] = append(found[method+" "+route], owner)
			return nil
		}))
	}
	for name, module := range w.modules {
		visit(name, module.Handler())
	}
	visit("gateway", w.gateway.Own())
	return found
}

// shared are the tests that share one installation: each has its own tenants.
var shared = []struct {
	name string
	test func(*testing.T, *world)
}{
	{"EveryRouteHasAPolicy", testEveryRouteHasAPolicy},
	{"Matrix", testMatrix},
	{"ForeignLooksUnknown", testForeignLooksUnknown},
	{"EveryAuthenticatedRouteIsLimited", testEveryAuthenticatedRouteIsLimited},
	{"Forgery", testForgery},
	{"SessionFixation", testSessionFixation},
	{"HeadersOfPages", testHeadersOfPages},
	{"OpenRedirects", testOpenRedirects},
	{"MassAssignment", testMassAssignment},
	{"NobodyIsEnumerated", testNobodyIsEnumerated},
	{"MethodsAndSizes", testMethodsAndSizes},
}

func TestInstallation(t *testing.T) {
	w := newWorldOn(t, postgrestest.URL(t), func(set *allinone.Modules) { set.Tenants.Bounds.ChangesPerMinute = 10_000 }) // more than they make
	for _, s := range shared {
		t.Run(s.name, func(t *testing.T) {
			own := *w
			own.checked = openapitest.Handler(t, w.gateway) // what it gets and is not described fails this test
			s.test(t, &own)
		})
	}
}

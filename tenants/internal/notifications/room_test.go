package notifications_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	tenantsbus "github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// A room has the webhooks of org_a and org_b, and one sender.
type room struct {
	facts

	pool       *pgxpool.Pool
	work       *unitofwork.Writer
	service    *notifications.Service
	deliveries *notifications.Deliveries
	sender     *notifications.Sender
	metrics    *prometheus.Registry
	mailed     bool

	mu  sync.Mutex
	now time.Time
}

func (r *room) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *room) pass(span time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(span)
	r.sender.Wake()
}

type organizations struct{}

func (organizations) Organization(_ context.Context, caller tenants.Caller, id string) (tenants.Organization, error) {
	if !caller.CanAccess(id) {
		return tenants.Organization{}, tenants.ErrNotFound
	}
	return tenants.Organization{ID: id}, nil
}

// newRoom makes a room that trusts the
// certificate of a server on this machine.
func newRoom(t *testing.T, trusted *x509.Certificate) *room {
	t.Helper()
	r := &room{pool: tenantstest.Open(t), now: time.Now().UTC().Truncate(time.Microsecond), metrics: prometheus.NewRegistry()}
	r.facts = facts{r.clock}
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	client := webhook.NewClient(webhook.Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots})
	r.work = tenantstest.NewWriter(r.pool)
	r.work.Clock = r.clock
	r.service = notifications.NewService(r.work, organizations{}, tenantstest.WebhookKey(), client)
	r.sender = r.newSender(client)
	r.deliveries = notifications.NewDeliveries(r.service, r.sender)
	return r
}

func (r *room) newSender(client *webhook.Client) *notifications.Sender {
	return notifications.NewSender(notifications.SenderConfig{
		Pool: r.pool, Work: r.work, Client: client, Keys: tenantstest.WebhookKey(), Metrics: r.metrics, Logger: slog.New(slog.DiscardHandler),
	})
}

// run runs the sender until the test ends, or stop is called.
func (r *room) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.sender.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func caller(organization string) tenants.Caller {
	return tenants.Caller{ID: "tok_1", Organization: organization}
}

func by(organization string) unitofwork.Request {
	return unitofwork.Request{Caller: caller(organization)}
}

// create creates a webhook of an organization for all facts.
func (r *room) create(t *testing.T, organization, url string) (notifications.Listed, httpapi.Secret) {
	t.Helper()
	var events []string
	for _, fact := range contract.Notifications() {
		events = append(events, fact.Name)
	}
	created, secret, err := r.service.Create(t.Context(), by(organization), notifications.NewWebhook{Organization: organization, URL: url, Events: events})
	testenv.Must(t, err)
	return notifications.Listed{Webhook: created}, secret
}

// facts makes facts as on their topics.
type facts struct{ clock func() time.Time }

func (f facts) record(t *testing.T, id, eventType, organization string, value any) bus.Record {
	t.Helper()
	text, err := json.Marshal(value)
	testenv.Must(t, err)
	attributes := contract.Attributes{ID: id, Type: eventType, Source: "weir/test", Time: f.clock(), Organization: organization}
	record := bus.Record{Value: text, Time: f.clock().Truncate(time.Millisecond)}
	for name, value := range attributes.Headers() {
		record.Headers = append(record.Headers, bus.Header{Key: name, Value: []byte(value)})
	}
	return record
}

func (f facts) exhausted(t *testing.T, id, organization string) bus.Record {
	t.Helper()
	return f.record(t, id, contract.TypeQuotaExhausted, organization, contract.QuotaExhausted{Organization: organization, Quota: 5, Used: 5, At: f.clock()})
}

func (r *room) consume(t *testing.T, records ...bus.Record) {
	t.Helper()
	testenv.Must(t, r.tryConsume(t, records...))
	r.sender.Wake()
}

func (r *room) tryConsume(t *testing.T, records ...bus.Record) error {
	t.Helper()
	return pg.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
		return tenantsbus.FactsConsumer{Origin: "https://weir.example", Deliver: notifications.Facts{Clock: r.clock, Mail: r.mailed}.Deliver}.Consume(t.Context(), tx, records)
	})
}

// sent lists the deliveries to a webhook, newest first.
func (r *room) sent(t *testing.T, of notifications.Listed) []notifications.Delivery {
	t.Helper()
	found, err := r.deliveries.List(t.Context(), caller(of.Organization), of.Ref(), "", noPosition, 100)
	testenv.Must(t, err)
	return found
}

// A receiver is an endpoint on this machine. It
// responds with answer, and keeps what it was sent.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer int
	got    []request
}

type request struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, answer int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { w.WriteHeader(r.take(request)) }))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(sent *http.Request) int {
	body, _ := io.ReadAll(sent.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, request{sent.Header.Clone(), body})
	return r.answer
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = status
}

func (r *receiver) received() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// await waits for so many messages.
func (r *receiver) await(t *testing.T, n int) []request {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := len(r.received()); got < n {
			return errNot("%d of %d messages have come", got, n)
		}
		return nil
	})
	return r.received()
}

func verify(t *testing.T, secret httpapi.Secret, r request) {
	t.Helper()
	receiver, err := standardwebhooks.NewWebhook(secret.Reveal())
	testenv.Must(t, err)
	if err := receiver.Verify(r.body, r.header); err != nil {
		t.Errorf("%s: %v", r.body, err)
	}
}

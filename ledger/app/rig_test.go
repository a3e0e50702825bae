package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

const partitions = 4

// A rig is a broker with other services' topics and a database, with
// what these services publish and consume there.
type rig struct {
	*contracttest.Others
	t      testing.TB
	config app.Config
	stop   func() // the ledger of billed

	mu       sync.Mutex
	accounts map[string]contract.Account
	counted  contract.Positions
	events   []string
	seen     func(contract.Account)
	loses    bool // weir.accounts.v1 goes back
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigAt(t, kafkatest.Brokers(t), pgtest.URL(t, postgres.Schema, postgres.Migrations()...))
}

func newRigAt(t testing.TB, brokers []string, database string) *rig {
	t.Helper()
	r := &rig{t: t, accounts: map[string]contract.Account{}, seen: func(contract.Account) {}}
	r.config = app.Config{
		Config:      service.Config{Servers: service.Servers{Brokers: brokers, DatabaseURL: httpapi.Secret(database)}},
		RulesConfig: app.RulesConfig{TierIndieBytes: 1000}, CheckInterval: 100 * time.Millisecond, BatchWait: 10 * time.Millisecond,
	}
	r.Others = contracttest.New(t, "ledger", r.config.Brokers, partitions)
	r.Consume(contract.TopicAccounts, r.account)
	r.Consume(contract.TopicLedger, r.event)
	return r
}

// account consumes a record of weir.accounts.v1. Neither an account nor
// the marker may go back.
func (r *rig) account(record bus.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loses {
		return
	}
	if string(record.Key) == contract.AccountsCountedKey {
		var marker contract.AccountsCounted
		decode(r.t, record.Value, &marker)
		for partition, next := range r.counted {
			if marker.Counted[partition] < next {
				r.t.Errorf("the marker fell back in partition %d from %d to %d", partition, next, marker.Counted[partition])
			}
		}
		r.counted = marker.Counted
		return
	}
	var account contract.Account
	decode(r.t, record.Value, &account)
	if before := r.accounts[account.Organization]; account.Version < before.Version || account.Organization != string(record.Key) {
		r.t.Errorf("after %+v came %+v with key %q", before, account, record.Key)
	}
	r.accounts[account.Organization] = account
	r.seen(account)
}

func decode(t testing.TB, value []byte, into any) {
	if err := json.Unmarshal(value, into); err != nil {
		t.Errorf("cannot read %s: %v", value, err)
	}
}

func (r *rig) event(record bus.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, record.Header(contract.HeaderID))
}

// start runs one more ledger and returns its graceful stop.
func (r *rig) start() (ledger *app.App, stop func()) {
	r.t.Helper()
	ledger, err := app.New(r.t.Context(), r.config, testenv.Logger(r.t))
	testenv.Must(r.t, err)
	return ledger, testenv.Run(r.t, ledger.Run)
}

// create publishes an organization's creation.
func (r *rig) create(organization, tier string) {
	r.t.Helper()
	r.PublishEvent(contract.TopicTenants, contract.TypeOrganizationCreated, organization, contract.OrganizationCreated{
		Organization: organization, Name: organization, Tier: tier, CreatedAt: time.Now().Add(-time.Minute),
	})
}

// logs is a LogsAccepted of one part.
func logs(organization string, bytes int64) contract.LogsAccepted {
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: organization + "-project",
		Environment: "prod", Key: "key", Source: "weir/ingest", Time: time.Now(), Entries: 2, Bytes: bytes, Lines: []byte("{}\n{}\n"),
	}
}

// awaitCounted waits until the marker covers everything published, and
// returns the published accounts.
func (r *rig) awaitCounted() map[string]contract.Account {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for partition, end := range r.End() {
			if r.counted[partition] < end {
				return fmt.Errorf("partition %d is counted to %d of %d", partition, r.counted[partition], end)
			}
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	accounts := map[string]contract.Account{}
	for id, account := range r.accounts {
		accounts[id] = account
	}
	return accounts
}

func (r *rig) awaitAccount(organization string) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, ok := r.accounts[organization]; !ok {
			return fmt.Errorf("no account %q", organization)
		}
		return nil
	})
}

func (r *rig) awaitEvents(n int) []string {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.events) < n {
			return fmt.Errorf("%d events of %d: %v", len(r.events), n, r.events)
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

// verify fails the test on any violation, in the database or against the log.
func verify(t testing.TB, config app.Config) {
	t.Helper()
	violations, err := app.Verify(context.Background(), config)
	testenv.Must(t, err)
	for _, v := range violations {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
}

// token publishes a service token and returns it.
func (r *rig) token(organization string, scopes ...string) string {
	r.t.Helper()
	return r.Issue(contract.Credential{Kind: contract.CredentialServiceToken, Organization: organization, Scopes: scopes})
}

// get sends a request and returns the status and the body's members.
func get(t testing.TB, ledger *app.App, token, path string) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	openapitest.Handler(t, ledger.Handler()).ServeHTTP(recorder, request)
	body, _ := io.ReadAll(recorder.Body)
	members := map[string]any{}
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%s answered %d %s", path, recorder.Code, body)
	}
	return recorder.Code, members
}

func awaitReady(t testing.TB, ledger *app.App) {
	t.Helper()
	testenv.Eventually(t, ledger.Ready)
}

func contains(list []string, part string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return strings.Contains(item, part) })
}

// scrape returns the current metrics.
func scrape(registry *telemetry.Registry) string {
	recorder := httptest.NewRecorder()
	registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// The metrics show the ledger's work and any broken invariant, without tenants.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	registry := telemetry.New()
	r.config.Telemetry.Registry = registry
	process, _ := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	r.Accept(logs("acme", 10), logs("acme", 20))
	r.awaitCounted()
	get(t, process, r.token("acme", "billing:read"), "/v1/organizations/acme/balance")
	shows := func(lines ...string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			text := scrape(registry)
			for _, line := range lines {
				if !strings.Contains(text, line) {
					return fmt.Errorf("%q is missing in\n%s", line, text)
				}
			}
			return nil
		})
	}
	unbroken := fmt.Sprintf("weir_ledger_violations_total{invariant=%q,service=\"ledger\"} 0\n", ledger.BalanceIsTransfers)
	shows(unbroken,
		`weir_bus_applied_records_total{group="ledger.quota",service="ledger",topic="weir.logs.v1"} 2`,
		`weir_bus_lag_records{group="ledger.quota",partition="0",service="ledger",topic="weir.logs.v1"} 0`,
		`weir_bus_relay_lag_seconds{relay="`, `weir_bus_published_records_total{service="ledger"} `,
		`weir_ledger_check_rounds_total{service="ledger"} `, `weir_ledger_verified_offset{partition="`,
		`weir_ledger_sealed_timestamp_seconds{service="ledger"} `,
		`weir_http_request_duration_seconds_count{method="GET",route="/v1/organizations/{organization}/balance",service="ledger",status=`)
	r.tamper(`UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE consumed > 0`)
	r.Accept(logs("acme", 30))
	testenv.Eventually(t, func() error { // repeated while earlier ranges are still being checked
		if strings.Contains(scrape(registry), unbroken) {
			return errors.New("no violation is counted")
		}
		return nil
	})
	if text := scrape(registry); strings.Contains(text, "acme") {
		t.Errorf("the metrics name tenants:\n%s", text)
	}
}

// BenchmarkEndToEnd measures from records in the broker to committed
// and published balances: a ledger starts behind the whole log.
func BenchmarkEndToEnd(b *testing.B) {
	const records, chunk = 100_000, 1000
	r := newRig(b)
	for i := range 100 {
		r.create(fmt.Sprint("org", i), "scale")
	}
	for first := 0; first < records; first += chunk {
		accepted := make([]contract.LogsAccepted, chunk)
		for i := range accepted {
			accepted[i] = logs(fmt.Sprint("org", (first+i)%100), 20000)
		}
		r.Accept(accepted...)
	}
	b.ResetTimer()
	for range b.N {
		r.start()
		r.awaitCounted()
	}
	b.ReportMetric(records/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkAccountLatency measures from the broker's acknowledgement of
// a LogsAccepted to its account state in weir.accounts.v1.
func BenchmarkAccountLatency(b *testing.B) {
	r := newRig(b)
	ledger, _ := r.start()
	r.create("acme", "scale")
	r.awaitAccount("acme")
	awaitReady(b, ledger)
	used := make(chan int64, 16)
	r.mu.Lock()
	r.seen = func(account contract.Account) { used <- account.Used }
	r.mu.Unlock()
	var took []time.Duration
	b.ResetTimer()
	for i := range int64(b.N) {
		r.Accept(logs("acme", 1))
		started := time.Now()
		for <-used < i+1 {
		}
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

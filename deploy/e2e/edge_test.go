package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// An edge is an organization with a small quota, its ledger, and replicas
// of ingest.
type edge struct {
	t        *testing.T
	common   base.Config
	books    *ledger.App
	key      string // of the organization
	billing  string // token
	database httpapi.Secret
}

const edgeOrganization = "acme"

// newEdge starts a ledger that gives the organization a quota of bytes.
func newEdge(t *testing.T, quota int64) *edge {
	e := &edge{t: t, database: httpapi.Secret(postgrestest.URL(t))}
	brokers := kafkatest.Brokers(t)
	others := contracttest.New(t, "nobody", brokers, 2)
	const project = "prj_1"
	others.PublishEvent(contract.TopicTenants, contract.TypeOrganizationCreated, edgeOrganization,
		contract.OrganizationCreated{Organization: edgeOrganization, Name: "Acme", Tier: "indie", CreatedAt: time.Now().Add(-time.Minute)})
	others.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, project,
		contract.ProjectCreated{Organization: edgeOrganization, Project: project, Name: "Shop", CreatedAt: time.Now()})
	e.key = others.Issue(contract.Credential{Kind: contract.CredentialAPIKey, Organization: edgeOrganization, Project: project, Environment: "prod"})
	e.billing = others.Issue(contract.Credential{Kind: contract.CredentialServiceToken, Organization: edgeOrganization, Scopes: []string{"billing:read", "billing:write"}})
	e.common = base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: e.database}}
	rules := ledger.RulesConfig{TierIndieBytes: quota, TierIndieRequests: 1_000_000}
	books, err := ledger.New(t.Context(), ledger.Config{Config: e.common, RulesConfig: rules}, testenv.Logger(t))
	testenv.Must(t, err)
	e.books = books
	testenv.Run(t, books.Run)
	return e
}

// An edgeReplica is a replica of ingest.
type edgeReplica struct {
	post    func(size int) (code string)
	stop    func()
	metrics *telemetry.Registry
}

// replica starts one, which is ready.
func (e *edge) replica() edgeReplica {
	config := ingest.Config{Config: e.common}
	config.Telemetry.Registry = telemetry.New()
	replica, err := ingest.New(e.t.Context(), config, testenv.Logger(e.t))
	testenv.Must(e.t, err)
	stop := testenv.Run(e.t, replica.Run)
	testenv.Eventually(e.t, replica.Ready)
	return edgeReplica{func(size int) string { return postTo(e.t, replica.Handler(), e.key, size) }, stop, config.Telemetry.Registry}
}

// awaitReplicas waits until a replica knows of so many.
func (r edgeReplica) awaitReplicas(t *testing.T, n int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		recorder := httptest.NewRecorder()
		r.metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := fmt.Sprintf("weir_ingest_replicas{service=\"ingest\"} %d\n", n); !strings.Contains(recorder.Body.String(), want) {
			return fmt.Errorf("there is no %q", want)
		}
		return nil
	})
}

// awaitAccount waits until a replica knows the account: it accepts an entry.
func (r edgeReplica) awaitAccount(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := r.post(1); got != "" {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	})
}

// send posts until the answer is not that it should be sent again.
func (r edgeReplica) send(t *testing.T, size int) (code string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if code = r.post(size); code == "overloaded" {
			return fmt.Errorf("%d bytes: %s", size, code)
		}
		return nil
	})
	return code
}

// An edgeBalance is a balance, in bytes.
type edgeBalance struct{ Granted, Consumed, Overage, Overshoot, Remaining int64 }

// call calls the ledger and reads its answer.
func (e *edge) call(method, path, body string, answer any) {
	e.t.Helper()
	r := httptest.NewRequestWithContext(e.t.Context(), method, "/v1/organizations/"+edgeOrganization+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+e.billing)
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	e.books.Handler().ServeHTTP(recorder, r)
	if recorder.Code >= 300 {
		e.t.Fatalf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
	testenv.Must(e.t, json.Unmarshal(recorder.Body.Bytes(), answer))
}

// balance is what the ledger has once all that was accepted is booked.
func (e *edge) balance() (b edgeBalance) {
	e.t.Helper()
	e.call(http.MethodGet, "/balance?wait=true", "", &b)
	return b
}

// Two replicas that get bursts at the edge of a quota accept together
// hardly more than it, whatever they accept beyond is nobody's debt, and
// a later grant remains whole.
func TestReplicasAtTheEdge(t *testing.T) {
	kafkatest.Parallel(t)
	const quota, request = 1_500_000, 10_000
	e := newEdge(t, quota)
	replicas := []edgeReplica{e.replica(), e.replica()}
	for _, r := range replicas {
		r.awaitAccount(t)
		r.awaitReplicas(t, len(replicas))
	}
	var burst sync.WaitGroup
	for _, r := range replicas {
		for range 4 {
			burst.Go(func() {
				for code := ""; code == "" || code == "overloaded"; code = r.post(request) { // until the quota is exhausted
				}
			})
		}
	}
	burst.Wait()
	before := e.balance()
	if before.Overage != 0 || before.Consumed > quota || before.Consumed < quota-2*request {
		t.Errorf("%+v of %d bytes", before, quota)
	}
	if before.Overshoot > quota/8 {
		t.Errorf("%d bytes of overshoot, an eighth of %d is the bound", before.Overshoot, quota)
	}
	t.Logf("two replicas accepted %d bytes beyond %d", before.Overshoot, quota)
	e.call(http.MethodPost, "/grants", `{"amount":1500000,"reason":"goodwill"}`, &struct{}{})
	after := e.balance()
	if after.Remaining != before.Remaining+1_500_000 || after.Consumed != before.Consumed || after.Overshoot != before.Overshoot {
		t.Errorf("%+v before, %+v after a grant of 1,500,000", before, after)
	}
	testenv.Eventually(t, func() error {
		if got := replicas[0].post(request); got != "" {
			return fmt.Errorf("after the grant: %s", got)
		}
		return nil
	})
}

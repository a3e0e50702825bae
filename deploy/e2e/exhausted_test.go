package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Exhausted stays exhausted: after a replica has refused a request, no
// other replica and no later run accepts a smaller one that would fit.
func TestExhaustedStaysExhausted(t *testing.T) {
	database, brokers := httpapi.Secret(postgrestest.URL(t)), kafkatest.Brokers(t)
	others := contracttest.New(t, "nobody", brokers, 2)
	const organization, project = "acme", "prj_1"
	others.PublishEvent(contract.TopicTenants, contract.TypeOrganizationCreated, organization,
		contract.OrganizationCreated{Organization: organization, Name: "Acme", Tier: "indie", CreatedAt: time.Now().Add(-time.Minute)})
	others.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, project,
		contract.ProjectCreated{Organization: organization, Project: project, Name: "Shop", CreatedAt: time.Now()})
	key := others.Issue(contract.Credential{Kind: contract.CredentialAPIKey, Organization: organization, Project: project, Environment: "prod"})

	common := base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: database}}
	books, err := ledger.New(t.Context(), ledger.Config{Config: common, RulesConfig: ledger.RulesConfig{TierIndieBytes: 100_000, TierIndieRequests: 1_000_000}}, testenv.Logger(t))
	must(t, err)
	testenv.Run(t, books.Run)
	start := func() (post func(size int) string, stop func()) {
		replica, err := ingest.New(t.Context(), ingest.Config{Config: common}, testenv.Logger(t))
		must(t, err)
		stop = testenv.Run(t, replica.Run)
		testenv.Eventually(t, startLimit, replica.Ready)
		return func(size int) string { return postTo(t, replica.Handler(), key, size) }, stop
	}
	one, stopOne := start()
	other, stopOther := start()
	testenv.Eventually(t, startLimit, func() error { // the account is published
		if got := one(1); got != "" {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	})
	if got := one(60_000); got != "" {
		t.Fatalf("60,000 bytes of 100,000: %s", got)
	}
	if got := one(50_000); got != "quota_exceeded" {
		t.Fatalf("50,000 bytes more: %q", got)
	}
	testenv.Eventually(t, startLimit, func() error {
		if got := other(1); got != "quota_exceeded" {
			return fmt.Errorf("another replica answered %q", got)
		}
		return nil
	})
	stopOne()
	stopOther()
	again, _ := start()
	if got := again(1); got != "quota_exceeded" {
		t.Errorf("after a restart: %q", got)
	}
	var used, refused int64
	conn, err := pgx.Connect(t.Context(), database.Reveal())
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `SELECT set_config('weir.organization', '*', false)`)
	must(t, err)
	must(t, conn.QueryRow(t.Context(), `SELECT consumed + overage FROM ledger.books`).Scan(&used))
	if used > 95_000 {
		t.Errorf("%d bytes are charged: the quota was used up, not refused", used)
	}
	testenv.Eventually(t, startLimit, func() error { // both replicas have published their last counts
		err := conn.QueryRow(t.Context(), `SELECT coalesce(sum(requests), 0)::bigint FROM ledger.usage_days WHERE outcome = 'quota_exceeded'`).Scan(&refused)
		if err == nil && refused != 2 {
			err = fmt.Errorf("%d refusals are counted, want one of each replica", refused)
		}
		return err
	})
}

// postTo posts one entry of at least a size, and returns the code of
// the answer's problem; empty without one.
func postTo(t *testing.T, ingest http.Handler, key string, size int) (code string) {
	t.Helper()
	body := `{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"m","metadata":{"text":"` + strings.Repeat("x", size) + `"}}]}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/logs", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", key)
	recorder := httptest.NewRecorder()
	ingest.ServeHTTP(recorder, r)
	var problem struct {
		Code string `json:"code"`
	}
	must(t, json.Unmarshal(recorder.Body.Bytes(), &problem))
	return problem.Code
}

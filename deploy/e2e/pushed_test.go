package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	tenants "github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/mailtest"
	"github.com/weirlog/weir/tenants/webhooktest"
)

// The ledger's facts are pushed: to a webhook, signed, each under one
// id until it is accepted, and to the owner by mail, once.
func TestFactsArePushed(t *testing.T) {
	kafkatest.Parallel(t)
	const quota = 1000
	endpoint, office := webhooktest.New(t, 1), mailtest.OpenPlain(t)
	p := startPushing(t, endpoint, office, quota)
	organization := p.post(t, "/v1/organizations", map[string]any{"name": "Acme", "tier": "indie"}).ID
	p.post(t, "/v1/members", map[string]any{
		"organization": organization, "email": "olga@example.com", "name": "Olga", "role": "owner", "password": "correct horse battery staple",
	})
	endpoint.Trust(p.post(t, "/v1/organizations/"+organization+"/webhooks", map[string]any{
		"url": endpoint.URL, "events": []string{"quota.threshold_reached", "quota.exhausted"},
	}).Secret)
	p.await(t, organization, 1, `SELECT count(*) FROM ledger.organizations`)
	p.others.Accept(accepted(organization, quota), accepted(organization, 1)) // nothing more follows from the second

	want := map[string]int{"quota.threshold_reached": 3, "quota.exhausted": 1}
	testenv.Eventually(t, func() error { return haveCome(endpoint, want, 1) })
	p.await(t, organization, 4, `SELECT count(*) FROM tenants.deliveries WHERE state = 'pending' AND status = 503 AND attempts = 1`)
	p.now.Add(int64(5 * time.Second)) // the first pause is not longer
	testenv.Eventually(t, func() error { return haveCome(endpoint, want, 2) })
	testenv.Eventually(t, func() error { return oneOfEach(office.Taken()) })
}

// pushing is the ledger and tenants, whose clock stands still unless
// the test advances it.
type pushing struct {
	others *contracttest.Others
	people *tenants.App
	pool   *pgxpool.Pool
	now    atomic.Int64 // Unix time in nanoseconds
}

const pushingOperator = "weirsvc_" + "0123456789abcdef0123456789abcdef0123456789abcdef"

func startPushing(t *testing.T, endpoint *webhooktest.Receiver, office *mailtest.Server, quota int64) *pushing {
	t.Helper()
	database, brokers := httpapi.Secret(postgrestest.URL(t)), kafkatest.Brokers(t)
	p := &pushing{others: contracttest.New(t, "nobody", brokers, 2)}
	config := ledger.Config{Config: base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: database}}, RulesConfig: ledger.RulesConfig{TierIndieBytes: quota, TierIndieRequests: 1000}}
	p.now.Store(time.Now().UnixNano())
	var err error
	p.pool, err = pg.Open(t.Context(), database.Reveal(), "tenants")
	testenv.Must(t, err)
	t.Cleanup(p.pool.Close)
	books, err := ledger.New(t.Context(), config, testenv.Logger(t))
	testenv.Must(t, err)
	testenv.Run(t, books.Run)
	p.people, err = tenants.New(t.Context(), tenants.Config{
		Config:        base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: database}, Clock: func() time.Time { return time.Unix(0, p.now.Load()) }},
		OperatorToken: pushingOperator, ConsoleOrigin: "https://weir.example", TestConfig: tenants.TestConfig{CheapPasswords: true}, InForceWait: time.Minute,
		Webhooks: tenants.WebhookConfig{Keys: httpapi.Secret(strings.Repeat("5a", 32)), Networks: []string{"127.0.0.0/8"}, CAFile: endpoint.Authority},
		Mail:     tenants.MailConfig{URL: httpapi.Secret("smtp://" + office.Address), From: "Weir <weir@example.com>"},
	}, testenv.Logger(t))
	testenv.Must(t, err)
	testenv.Run(t, p.people.Run)
	testenv.Eventually(t, func() error { return errors.Join(books.Ready(), p.people.Ready()) })
	return p
}

// made is the answer for a created thing.
type made struct {
	ID, Key, Secret string
}

// post creates something as the operator.
func (p *pushing) post(t *testing.T, path string, body map[string]any) (got made) {
	t.Helper()
	text, err := json.Marshal(body)
	testenv.Must(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(text))
	r.Header.Set("Authorization", "Bearer "+pushingOperator)
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	p.people.Handler().ServeHTTP(recorder, r)
	if recorder.Code != http.StatusCreated {
		t.Fatalf("POST %s: %d %s", path, recorder.Code, recorder.Body)
	}
	testenv.Must(t, json.Unmarshal(recorder.Body.Bytes(), &got))
	return got
}

// await waits until a query counts so many rows of an organization.
func (p *pushing) await(t *testing.T, organization string, want int, query string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var found int
		err := pg.ReadAs(t.Context(), p.pool, pg.Organization(organization), func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), query).Scan(&found) })
		if err == nil && found != want {
			err = fmt.Errorf("%d of %d: %s", found, want, query)
		}
		return err
	})
}

// accepted returns a request of some bytes that ingest has accepted.
func accepted(organization string, bytes int64) contract.LogsAccepted {
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: "prj_1", Environment: "prod", Key: "key_1",
		Source: "weir/ingest", Time: time.Now(), Entries: 1, Bytes: bytes, Lines: []byte("{}\n"),
	}
}

// haveCome returns what differs from so many messages of each type,
// each so many times, or what was wrong.
func haveCome(endpoint *webhooktest.Receiver, want map[string]int, times int) error {
	types, seen, err := endpoint.Types()
	got := map[string]int{}
	for id, n := range seen {
		if n == times {
			got[types[id]]++
		}
	}
	if err == nil && !maps.Equal(got, want) {
		err = fmt.Errorf("%v have come %d times, want %v; all are %v", got, times, want, seen)
	}
	return err
}

// oneOfEach reports whether the owner has exactly one mail of each fact.
func oneOfEach(mails []string) error {
	all := strings.Join(mails, "\n")
	subjects := []string{"Acme has used up its quota", "Acme has used 50% of its quota", "Acme has used 80% of its quota", "Acme has used 100% of its quota"}
	for _, subject := range subjects {
		if strings.Count(all, "Subject: "+subject) != 1 || strings.Count(all, "<olga@example.com>") != len(mails) || len(mails) != len(subjects) {
			return fmt.Errorf("%d mails, where one is to have the subject %q: %s", len(mails), subject, all)
		}
	}
	return nil
}

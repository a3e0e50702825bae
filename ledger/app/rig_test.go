package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

const partitions = 4

// waitTimeout is how long a test waits. A dead ledger's partition is
// reassigned only after its session timeout.
const waitTimeout = 60 * time.Second

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
		r.decode(record.Value, &marker)
		for partition, next := range r.counted {
			if marker.Counted[partition] < next {
				r.t.Errorf("the marker fell back in partition %d from %d to %d", partition, next, marker.Counted[partition])
			}
		}
		r.counted = marker.Counted
		return
	}
	var account contract.Account
	r.decode(record.Value, &account)
	if before := r.accounts[account.Organization]; account.Version < before.Version || account.Organization != string(record.Key) {
		r.t.Errorf("after %+v came %+v with key %q", before, account, record.Key)
	}
	r.accounts[account.Organization] = account
	r.seen(account)
}

func (r *rig) decode(value []byte, into any) {
	if err := json.Unmarshal(value, into); err != nil {
		r.t.Errorf("cannot read %s: %v", value, err)
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
	if err != nil {
		r.t.Fatal(err)
	}
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
	testenv.Eventually(r.t, waitTimeout, func() error {
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
	testenv.Eventually(r.t, waitTimeout, func() error {
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
	testenv.Eventually(r.t, waitTimeout, func() error {
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
func (r *rig) verify() {
	r.t.Helper()
	violations, err := app.Verify(context.Background(), r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, v := range violations {
		r.t.Errorf("%s: %s", v.Invariant, v.Detail)
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
	testenv.Eventually(t, waitTimeout, ledger.Ready)
}

func contains(list []string, part string) bool {
	for _, item := range list {
		if strings.Contains(item, part) {
			return true
		}
	}
	return false
}

package app_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A rig is a broker, a database, and the records of tenants and ledger;
// it starts replicas of ingest.
type rig struct {
	*contracttest.Others
	t       testing.TB
	config  app.Config
	roots   *x509.CertPool
	version int64
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigOn(t, kafkatest.Brokers(t))
}

func newRigOn(t testing.TB, brokers []string) *rig {
	t.Helper()
	r := &rig{t: t}
	r.config.Config = service.Config{Servers: service.Servers{Brokers: brokers, DatabaseURL: httpapi.Secret(pgtest.URL(t, postgres.Schema, postgres.Migrations()...))}}
	r.config.Listen = "127.0.0.1:0"
	r.config.TLSCertFile, r.config.TLSKeyFile, r.roots = certificate(t)
	r.config.Publish.LogPartitions = 4 // ingest creates its own topics itself
	r.Others = contracttest.New(t, "ingest", brokers, 0)
	return r
}

// certificate makes a certificate for 127.0.0.1.
func certificate(t testing.TB) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	testenv.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	testenv.Must(t, err)
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	err = errors.Join(os.WriteFile(certFile, certPEM, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	testenv.Must(t, err)
	return certFile, keyFile, roots
}

// account publishes the ledger's account of an organization; change may be nil.
func (r *rig) account(organization string, change func(*contract.Account)) contract.Account {
	r.t.Helper()
	r.version++
	month := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).Truncate(24 * time.Hour)
	account := contract.Account{
		Organization: organization, Tier: "scale", RequestsPerMinute: 1800, AnchorDay: 1, PeriodStart: month, PeriodEnd: month.AddDate(0, 1, 0),
		Quota: 1 << 40, NextQuota: 1 << 40, State: contract.AccountActive, Counted: contract.Positions{}, Version: r.version,
	}
	if change != nil {
		change(&account)
	}
	r.PublishEvent(contract.TopicAccounts, contract.TypeAccountChanged, organization, account)
	return account
}

// key publishes a new API key as tenants does; change may be nil.
func (r *rig) key(organization, project string, change func(*contract.Credential)) string {
	r.t.Helper()
	credential := contract.Credential{Kind: contract.CredentialAPIKey, Organization: organization, Project: project, Environment: "prod"}
	if change != nil {
		change(&credential)
	}
	secret := r.Issue(credential)
	r.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, project, contract.ProjectCreated{Organization: organization, Project: project, Name: project, CreatedAt: time.Now()})
	return secret
}

// A replica is one running ingest.
type replica struct {
	*app.App
	t      testing.TB
	url    string
	client *http.Client
	stop   func()
}

// start starts one more ingest and waits until it is ready.
func (r *rig) start(change func(*app.Config)) *replica {
	r.t.Helper()
	p := r.begin(change)
	testenv.Eventually(r.t, p.Ready)
	return p
}

// begin starts one more ingest.
func (r *rig) begin(change func(*app.Config)) *replica {
	r.t.Helper()
	config := r.config
	if change != nil {
		change(&config)
	}
	ingest, err := app.New(r.t.Context(), config, testenv.Logger(r.t))
	testenv.Must(r.t, err)
	stopped := testenv.Run(r.t, ingest.Run)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, MaxIdleConnsPerHost: 32, DisableCompression: true}
	stop := func() {
		transport.CloseIdleConnections()
		stopped()
	}
	r.t.Cleanup(stop)
	checked := openapitest.Transport(r.t, ingest.Handler(), transport)
	return &replica{App: ingest, t: r.t, url: "https://" + ingest.Addr(), client: &http.Client{Transport: checked}, stop: stop}
}

// An answer is a response with its body.
type answer struct {
	status int
	header http.Header
	text   []byte
	body   map[string]any
}

func (a answer) code() string { return fmt.Sprint(a.body["code"]) }

// number returns a numeric member of the body.
func (a answer) number(member string) int64 {
	n, _ := a.body[member].(float64)
	return int64(n)
}

// post sends a body; headers are name, value, name, value...
func (p *replica) post(key string, body []byte, headers ...string) answer {
	p.t.Helper()
	return p.send(http.MethodPost, "/v1/logs", key, bytes.NewReader(body), headers...)
}

func (p *replica) get(key, path string) answer {
	p.t.Helper()
	return p.send(http.MethodGet, path, key, nil)
}

func (p *replica) send(method, path, key string, body io.Reader, headers ...string) answer {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, body)
	testenv.Must(p.t, err)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Del(headers[i])
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := p.client.Do(request)
	testenv.Must(p.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	testenv.Must(p.t, err)
	got := answer{status: response.StatusCode, header: response.Header, text: text}
	var outOfRange *json.UnmarshalTypeError // an entry may hold numbers that no float64 can
	if err := json.Unmarshal(text, &got.body); err != nil && !errors.As(err, &outOfRange) {
		p.t.Fatalf("%s %s answers %d with %q", method, path, response.StatusCode, text)
	}
	if response.Header.Get("X-Request-Id") == "" {
		p.t.Errorf("an answer has no X-Request-Id")
	}
	if got.status != http.StatusOK {
		checkProblem(p.t, got)
	}
	return got
}

// checkProblem checks the members of every error.
func checkProblem(t testing.TB, a answer) {
	t.Helper()
	for _, member := range []string{"type", "title", "status", "detail", "code", "message", "request_id"} {
		if a.body[member] == nil {
			t.Errorf("a problem has no %q: %s", member, a.text)
		}
	}
	if a.header.Get("Content-Type") != "application/problem+json" || a.body["message"] != a.body["detail"] || a.body["request_id"] != a.header.Get("X-Request-Id") {
		t.Errorf("no proper problem: %v %s", a.header, a.text)
	}
	if retry := a.header.Get("Retry-After"); (a.status == http.StatusTooManyRequests || a.code() == "unavailable") && (retry == "" || retry == "0") {
		t.Errorf("%d %s has Retry-After %q", a.status, a.code(), retry)
	}
}

// entry returns a valid entry; more are further members, each with a
// comma before it.
func entry(message string, more ...string) string {
	return `{"timestamp":"2026-11-20T10:00:00.000000001Z","level":"info","message":"` + message + `"` + strings.Join(more, "") + `}`
}

func bodyOf(entries ...string) []byte { return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`) }

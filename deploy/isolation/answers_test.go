package isolation

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// unproduced lists the described answers that no test here gets,
// with the reason.
var unproduced = map[string]string{
	"PATCH /v1/error-groups/{group} 409":                        "two people at once: TestDecideAtOnce in grouping/internal/http",
	"POST /v1/error-groups/{group}/split 200":                   "a group whose samples differ: TestSplit in grouping/internal/http",
	"POST /v1/error-groups/{group}/split 409":                   "two people at once: the same",
	"POST /v1/error-groups/{group}/merge 409":                   "two people at once: TestMerge in grouping/internal/http",
	"POST /v1/error-groups/{group}/unmerge 409":                 "two people at once: TestMerge in grouping/internal/http",
	"PATCH /v1/projects/{project}/error-groups 409":             "a group with 1,000 decisions: TestDecisions in grouping",
	"POST /v1/logs 403":                                         "plain HTTP is refused by the listener, before any handler: TestServerRefusesPlainHTTP in shared/httpapi",
	"POST /v1/otlp/v1/logs 403":                                 "the same",
	"POST " + lokiPath + " 403":                                 "the same",
	"POST " + bulkPath + " 403":                                 "the same",
	"PUT " + bulkPath + " 403":                                  "the same",
	"POST /v1/projects/{project}/error-alerts 409":              "a project with 50 alerts: TestAlertRefusals in grouping/internal/http",
	"POST /v1/projects/{project}/error-alerts/{alert}/test 409": "a test within a minute: TestAlerts in grouping/internal/http",
	"POST /v1/projects/{project}/source-maps 409":               "an organization with 5,000 maps: TestMapsAreBounded in grouping/internal/postgres",
}

// Limits of an installation for which every answer can be produced.
const (
	readsPerMinute = 400 // more than it takes to make its things
	maxProjects    = 6
)

// Every answer that the OpenAPI document describes is given: this test
// produces those that the other tests of the package don't, and
// TestMain checks that none is missing.
func TestEveryAnswerIsGiven(t *testing.T) {
	s := newScanner(t)
	w := newWorldOn(t, postgrestest.URL(t), func(set *allinone.Modules) {
		set.Ingest.Limits.ReadsPerMinute, set.Ledger.Limits.ReadsPerMinute = readsPerMinute, readsPerMinute
		set.Grouping.Limits.ReadsPerMinute, set.Tenants.Limits.ReadsPerMinute = readsPerMinute, readsPerMinute
		set.Tenants.Bounds.MaxProjects, set.Tenants.DeletionGrace = maxProjects, time.Hour
		set.Tenants.Leaks.Reports, set.Tenants.Leaks.KeysFile = true, s.published
	})
	a := w.tenant(t, "Acorn")
	a.things["owner"] = a.member(t, "owner", "owner@example.com")
	a.things["joined"] = w.joined(t, a)
	for _, situation := range situations {
		w.is(t, a, situation)
	}
	w.takesReports(t, s)
	w.refusesFaults(t, a)
	w.decidesTooOften(t, a)
	w.isAskedTooOften(t, a)
}

// A situation is a sequence of requests, of the operator or of a key, with the wanted
// status of the last; the earlier ones succeed. Equal requests have
// the same Idempotency-Key.
type situation struct {
	want     int
	requests []string // method, path and body
}

// situations produce answers that need several requests, or a special one.
var situations = []situation{
	{409, twice(`POST /v1/api-keys {"project":"{project}","environment":"dev","name":"K"}`)}, // secrets are shown once
	{409, twice(`POST /v1/api-keys/{new-key}/rotate`)},
	{409, twice(`POST /v1/service-tokens {"organization":"{organization}","name":"T","scopes":["audit:read"]}`)},
	{409, twice(`POST /v1/invitations {"organization":"{organization}","email":"{new-email}","role":"viewer"}`)},
	{409, twice(`POST /v1/organizations/{organization}/webhooks {"url":"https://hooks.invalid","events":["quota.exhausted"]}`)},
	{409, twice(`POST /v1/organizations/{organization}/webhooks/{new-webhook}/rotate`)},

	{409, []string{`POST /v1/api-keys/{new-key}/revoke {"reason":"test"}`, `PATCH /v1/api-keys/{new-key} {"rate_per_minute":1}`}},
	{409, []string{`PATCH /v1/members/{owner} {"role":"viewer"}`}}, // the only one
	{409, []string{`POST /v1/members/{owner}/remove`}},
	{409, []string{`POST /v1/invitations/{new-invitation}/revoke`, `POST /v1/invitations/{new-invitation}/resend`}},
	{409, []string{`POST /v1/invitations/{joined}/revoke`}},
	{409, []string{off("{new-webhook}"), `POST /v1/organizations/{organization}/webhooks/{new-webhook}/test`}},
	{409, []string{off("{new-webhook}"), `POST /v1/organizations/{organization}/webhooks/{new-webhook}/replay {"since":"2026-11-20T00:00:00Z"}`}},
	{409, []string{off("{webhook}"), `POST /v1/organizations/{organization}/webhooks/{webhook}/deliveries/{new-delivery}/replay`}},

	{409, []string{`POST /v1/searches {"name":"S"}`, `POST /v1/searches {"name":"s"}`}},
	{404, []string{`POST /v1/searches {"name":"S","project":"prj_0"}`}},
	{409, []string{`PUT /v1/searches/{new-search} {"name":"{new-email}","version":2}`}},
	{409, []string{`DELETE /v1/searches/{new-search}?version=2`}},
	{409, []string{`PUT /v1/searches/{new-search}/alert {"every_seconds":60,"window_seconds":60,"condition":"more_than","threshold":1}`}},
	{409, []string{`DELETE /v1/searches/{new-search}/alert?version=2`}},
	{409, twice(`POST /v1/searches/{new-search}/alert/test`)},
	{409, []string{`PUT /v1/projects/{project}/error-alerts/{new-alert} {"name":"B","triggers":["new"],"version":2}`}},
	{409, []string{`DELETE /v1/projects/{project}/error-alerts/{new-alert}?version=2`}},
	{409, []string{`PUT /v1/projects/{project}/ingest-rules {"rules":"drop a","if_version":99}`}},
	{409, []string{`PUT /v1/projects/{project}/ingest-rules {"rules":"drop a"}`, `POST /v1/projects/{project}/ingest-rules/versions/1/restore {"if_version":99}`}},
	{409, []string{`PUT /v1/projects/{project}/error-rules {"rules":"","if_version":99}`}},
	{409, []string{`PUT /v1/projects/{project}/error-settings {"if_since":"2026-11-20T00:00:00Z"}`}},
	{409, []string{`PUT /v1/projects/{project}/error-owners {"rules":[],"if_since":"2026-11-20T00:00:00Z"}`}},
	{409, []string{`PUT /v1/projects/{project}/error-rules {"rules":"scrub ip"}`, `POST /v1/projects/{project}/error-rules/versions/1/restore {"if_version":99}`}},

	{200, []string{`DELETE /v1/projects/{new-project}`, `POST /v1/projects/{new-project}/restore`}},
	{200, []string{`DELETE /v1/organizations/{new-organization}`, `POST /v1/organizations/{new-organization}/restore`}},
	{404, []string{`DELETE /v1/projects/prj_0`}},
	{404, []string{`DELETE /v1/organizations/org_0`}},
	{404, []string{`POST /v1/members {"organization":"org_0","email":"{new-email}","name":"M","role":"viewer","password":"correct horse battery"}`}},
	{409, []string{project(1), project(2), project(3), project(4)}}, // two were there, and one is restored
}

func twice(request string) []string { return []string{request, request} }

func off(webhook string) string {
	return `PATCH /v1/organizations/{organization}/webhooks/` + webhook + ` {"state":"off"}`
}

func project(number int) string {
	return `POST /v1/projects {"organization":"{organization}","name":"P` + string(rune('0'+number)) + `"}`
}

// is sends the requests of a situation.
func (w *world) is(t *testing.T, of *tenant, s situation) {
	t.Helper()
	texts := of.fill(t, s.requests...)
	for i, text := range texts {
		method, rest, _ := strings.Cut(text, " ")
		path, body, _ := strings.Cut(rest, " ")
		sum := sha256.Sum256([]byte(text))
		got := w.send(t, request{method: method, path: path, body: body, header: map[string]string{
			"Authorization": "Bearer " + operatorToken, "X-Api-Key": of.key, "Idempotency-Key": hex.EncodeToString(sum[:]),
		}})
		if last := i == len(texts)-1; last && got.status != s.want || !last && got.status/100 != 2 {
			t.Errorf("%q: %s is answered %d %s, want %d in the end", s.requests, text, got.status, got.brief(), s.want)
		}
	}
}

// joined returns an accepted invitation.
func (w *world) joined(t *testing.T, of *tenant) string {
	t.Helper()
	invited := w.operate(t, "POST", "/v1/invitations", map[string]any{"organization": of.things["organization"], "email": "joins@example.com", "role": "viewer"})
	form := url.Values{"code": {invited.get("code")}, "email": {"joins@example.com"}, "name": {"Joins"}, "password": {password}}
	got := w.send(t, request{method: "POST", path: "/console/join", body: form.Encode(), header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("join: %d %s", got.status, got.brief())
	}
	return invited.get("id")
}

// faulty returns the requests of the API's policies as a permitted
// caller sends them, with an invalid parameter, header and body. They
// change nothing, so what others use up is not created again.
func (w *world) faulty(t *testing.T, of *tenant) (requests []request) {
	t.Helper()
	asked := &tenant{world: w, name: of.name, things: maps.Clone(of.things)}
	for name := range makers {
		asked.things[name] = cmp.Or(of.things[strings.TrimPrefix(name, "new-")], "none")
	}
	for _, p := range policies {
		if !strings.Contains(p.route, " /v1/") || p.who.line == everybody.line {
			continue
		}
		r := p.request(t, asked)
		r.header = asToken(operatorToken)
		if slices.Contains([]string{keys.line, readers.line, wideReaders.line, deciders.line}, p.who.line) {
			r.header = asKey(of.key)
		}
		if r.method == http.MethodGet {
			r.path, _, _ = strings.Cut(r.path, "?")
			r.path += "?surprise=1"
		} else {
			r.body, r.header["Idempotency-Key"] = "{", ""
		}
		requests = append(requests, r)
	}
	return requests
}

// refusesFaults sends invalid requests, with malformed queries.
func (w *world) refusesFaults(t *testing.T, of *tenant) {
	t.Helper()
	for _, r := range w.faulty(t, of) {
		r.path = strings.Replace(r.path, "surprise=1", "%zz", 1)
		if got := w.send(t, r); got.status != http.StatusBadRequest {
			t.Errorf("%s %s with faults: %d %s, want 400", r.method, r.path, got.status, got.brief())
		}
	}
}

// isAskedTooOften sends requests without pause until one is refused.
func (w *world) isAskedTooOften(t *testing.T, of *tenant) {
	t.Helper()
	slow := w.operate(t, "POST", "/v1/api-keys", map[string]any{"project": of.things["project"], "environment": "dev", "name": "slow", "rate_per_minute": 1})
	of.key = slow.get("key")
	for _, r := range w.faulty(t, of) {
		switch r.path { // these count what they accept
		case "/v1/logs":
			r = request{method: r.method, path: r.path, body: logs(of.name), header: asKey(of.key)}
		case otlpPath:
			r = request{method: r.method, path: r.path, body: otlpRecord, header: asKey(of.key)}
		case lokiPath:
			r = request{method: r.method, path: r.path, body: lokiPush, header: asKey(of.key)}
		case bulkPath:
			r = request{method: r.method, path: r.path, body: bulkDocument, header: asKey(of.key)}
		}
		got := answer{}
		for range 2 * readsPerMinute {
			if got = w.send(t, r); got.status == http.StatusTooManyRequests {
				break
			}
		}
		if got.status != http.StatusTooManyRequests {
			t.Errorf("%s %s without pause: %d %s, want 429", r.method, r.path, got.status, got.brief())
		}
	}
}

// decidesTooOften makes as many decisions about an organization as are allowed.
func (w *world) decidesTooOften(t *testing.T, of *tenant) {
	t.Helper()
	books := "/v1/organizations/" + of.things["organization"]
	w.decide(t, books+"/budgets", `[{"project":"`+of.things["project"]+`","bytes":9}]`) // the second one: each is looked for by its number
	testenv.Must(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT set_config('weir.organization', '*', true)`)
		if err == nil {
			_, err = tx.Exec(t.Context(), `UPDATE ledger.organizations SET decisions = decisions + $2 WHERE organization = $1`,
				of.things["organization"], ledger.MaxDecisions-2)
		}
		return err
	}))
	for _, change := range []string{
		`PUT {books}/subscription {"tier":"indie"}`, `PUT {books}/budgets [{"project":"{project}","bytes":7}]`, `DELETE {books}/budgets?project={project}`,
		`POST {books}/grants {"amount":1}`, `POST {books}/grants/{grant}/void`, `POST {books}/adjustments {"amount":1}`,
	} {
		w.is(t, of, situation{409, []string{strings.Replace(change, "{books}", books, 1)}})
	}
}

// A scanner finds secrets in public places, and signs its reports.
type scanner struct {
	key       *ecdsa.PrivateKey
	published string // file with its public key
}

func newScanner(t *testing.T) scanner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testenv.Must(t, err)
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	text, err := json.Marshal(map[string]any{"public_keys": []any{map[string]any{"key_identifier": "one", "key": public}}})
	testenv.Must(t, err)
	s := scanner{key, filepath.Join(t.TempDir(), "keys.json")}
	testenv.Must(t, os.WriteFile(s.published, text, 0o600))
	return s
}

// takesReports sends a valid report, a malformed one, and one
// in another's name.
func (w *world) takesReports(t *testing.T, s scanner) {
	t.Helper()
	for report, want := range map[string]int{`[{"token":"none of ours"}]`: 200, `{`: 400, `[]`: 401} {
		sum := sha256.Sum256([]byte(report))
		signature, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
		testenv.Must(t, err)
		if want == http.StatusUnauthorized {
			signature = sum[:]
		}
		got := w.send(t, request{method: "POST", path: "/v1/leak-reports", body: report, header: map[string]string{
			"Github-Public-Key-Identifier": "one", "Github-Public-Key-Signature": base64.StdEncoding.EncodeToString(signature),
		}})
		if got.status != want {
			t.Errorf("the report %s: %d %s, want %d", report, got.status, got.brief(), want)
		}
	}
}

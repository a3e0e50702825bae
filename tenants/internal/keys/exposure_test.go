package keys_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// A scanner finds secrets and signs what it reports.
type scanner struct {
	key   *ecdsa.PrivateKey
	known *leak.Keys // its published public key
}

func newScanner(t *testing.T) scanner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testenv.Must(t, err)
	text, err := json.Marshal(map[string]any{"public_keys": []any{map[string]any{
		"key_identifier": "one", "key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	}}})
	file := filepath.Join(t.TempDir(), "keys.json")
	testenv.Must(t, errors.Join(err, os.WriteFile(file, text, 0o600)))
	known, err := leak.ReadKeys(file)
	testenv.Must(t, err)
	return scanner{key, known}
}

func (s scanner) sign(t *testing.T, report string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(report))
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	testenv.Must(t, err)
	return base64.StdEncoding.EncodeToString(signature)
}

// report sends a signed report to a process that
// has some scanners' keys, and is ready or not.
func (r room) report(t *testing.T, known *leak.Keys, ready error, report, signature string) *httptest.ResponseRecorder {
	t.Helper()
	guard := identity.NewGuard(identity.GuardConfig{Clock: tenantstest.Now, Ready: func() error { return ready }})
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: tenantstest.Now})
	keys.NewLeakReports(keys.NewExposures(r.work, registry.SecurityPolicyOf), guard, known).Operation().Mount(router)
	request := httptest.NewRequestWithContext(t.Context(), "POST", "https://weir.example/v1/leak-reports", strings.NewReader(report))
	request.Header.Set("Github-Public-Key-Identifier", "one")
	request.Header.Set("Github-Public-Key-Signature", signature)
	recorder := httptest.NewRecorder()
	routetest.Handler(router).ServeHTTP(recorder, request)
	return recorder
}

// The sender learns which texts are keys, by their hashes alone,
// and the key shows where it was found, without any secret.
func TestReport(t *testing.T) {
	r, s := open(t), newScanner(t)
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	secret, unknown := made["key"].(string), "weir_"+strings.Repeat("e", 48)
	report := `[{"token":"` + secret + `","type":"t","url":"https://code.example/?` + secret + `","source":"content"},{"token":"` + unknown + `"},{"token":"none"}]`
	got := r.report(t, s.known, nil, report, s.sign(t, report))
	var labels []struct {
		Hash  string `json:"token_hash"`
		Type  string `json:"token_type"`
		Label string `json:"label"`
	}
	if err := json.Unmarshal(got.Body.Bytes(), &labels); err != nil || got.Code != 200 || len(labels) != 3 {
		t.Fatalf("reported: %d %s %v", got.Code, got.Body, err)
	}
	for i, text := range []string{secret, unknown, "none"} {
		label := map[bool]string{true: "true_positive", false: "false_positive"}[i == 0]
		if labels[i].Hash != contract.CredentialKey(text) || labels[i].Label != label {
			t.Errorf("match %d is labeled %+v, want %s", i, labels[i], label)
		}
	}
	_, leaked := r.call(t, "org_a", "GET", "/v1/api-keys/"+made["id"].(string), "")
	if exposures := leaked["exposures"].([]any); len(exposures) != 1 || exposures[0].(map[string]any)["where"] != "https://code.example/?weir_[redacted]" {
		t.Errorf("the key is exposed by %v", exposures)
	}
	for role, way := range map[tenants.Role]string{tenants.Admin: ">Rotate it now</a>", tenants.Viewer: "Ask an owner or admin"} {
		tenantstest.Want(t, "as "+string(role), r.page(t, role, "GET", "/"+made["id"].(string), nil), 200, way)
	}
}

// Without a signature nobody learns or changes anything.
func TestReportsAreRefused(t *testing.T) {
	r, s := open(t), newScanner(t)
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	report := `[{"token":"` + made["key"].(string) + `"}]`
	large := "[]" + strings.Repeat(" ", 1<<20)
	for name, c := range map[string]struct {
		known  *leak.Keys
		ready  error
		report string
		signed string
		status int
		code   string
	}{
		"by nobody":        {s.known, nil, report, "", 401, "invalid_signature"},
		"for another text": {s.known, nil, report, s.sign(t, "[]"), 401, "invalid_signature"},
		"no array":         {s.known, nil, "{}", s.sign(t, "{}"), 400, httpapi.CodeInvalidRequest},
		"too large":        {s.known, nil, large, s.sign(t, large), 400, "body_too_large"},
		"not taken here":   {nil, nil, report, s.sign(t, report), 404, httpapi.CodeNotFound},
		"not ready":        {s.known, httpapi.Unavailable("The credentials are being read.", 0), report, s.sign(t, report), 500, ""},
	} {
		if got := r.report(t, c.known, c.ready, c.report, c.signed); got.Code != c.status || !strings.Contains(got.Body.String(), c.code) {
			t.Errorf("%s: %d %s, want %d %s", name, got.Code, got.Body, c.status, c.code)
		}
	}
	if _, key := r.call(t, "org_a", "GET", "/v1/api-keys/"+made["id"].(string), ""); len(key["exposures"].([]any)) != 0 {
		t.Errorf("a refused report exposed %v", key)
	}
}

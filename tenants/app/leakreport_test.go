package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// A scanner finds secrets and signs what it reports.
type scanner struct{ key *ecdsa.PrivateKey }

func (w *world) scanner(t *testing.T) scanner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	w.leakKeys = filepath.Join(t.TempDir(), "keys.json")
	published := text(map[string]any{"public_keys": []any{map[string]any{
		"key_identifier": "one", "is_current": true, "key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	}}})
	if err := os.WriteFile(w.leakKeys, []byte(published), 0o600); err != nil {
		t.Fatal(err)
	}
	return scanner{key}
}

// report sends a body, signed unless forged.
func (s scanner) report(t *testing.T, p *process, body string, forged bool) (status int, labels []map[string]string, answered string) {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	if forged {
		body += " "
	}
	request := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/leak-reports", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Github-Public-Key-Identifier", "one")
	request.Header.Set("Github-Public-Key-Signature", base64.StdEncoding.EncodeToString(signature))
	recorder := httptest.NewRecorder()
	p.checked.ServeHTTP(recorder, request)
	if recorder.Code == 200 {
		if err := json.Unmarshal(recorder.Body.Bytes(), &labels); err != nil {
			t.Fatal(err)
		}
	}
	return recorder.Code, labels, recorder.Body.String()
}

// The sender of a signed report learns which of the tokens
// are keys, by their hashes. The policy decides on each key.
// No answer, table, record or log line holds the tokens.
func TestLeakReports(t *testing.T) {
	w := newWorld(t)
	s := w.scanner(t)
	p, n := w.start(t, operatorToken), w.follow(t)
	acme, strict := p.tenant(t, "Acme"), p.tenant(t, "Strict")
	urgent := p.tenant(t, "Urgent")
	p.must(t, 200, "PUT", "/v1/organizations/"+strict.organization+"/security-policy", `{"leaked_keys":"revoke","plain_http_keys":"flag"}`)
	p.must(t, 200, "PUT", "/v1/organizations/"+urgent.organization+"/security-policy", `{"leaked_keys":"rotate","plain_http_keys":"flag"}`)
	unknown := "weir_" + strings.Repeat("e", 48)
	match := func(token string) map[string]string {
		return map[string]string{"token": token, "type": "weir_api_key", "source": "content of " + token, "url": "https://code.example/x?" + token + "&" + unknown}
	}
	body := text([]any{match(acme.secret), match(strict.secret), match(urgent.secret), match(unknown), match("weir_short"), match(acme.token)})
	for range 2 { // a repeated report is answered the same, and changes nothing
		status, labels, answered := s.report(t, p, body, false)
		if status != 200 || len(labels) != 6 {
			t.Fatalf("got %d %s", status, answered)
		}
		for i, want := range []struct{ token, label string }{
			{acme.secret, "true_positive"}, {strict.secret, "true_positive"}, {urgent.secret, "true_positive"},
			{unknown, "false_positive"}, {"weir_short", "false_positive"}, {acme.token, "false_positive"},
		} {
			got := labels[i]
			if len(got) != 3 || got["token_hash"] != contract.CredentialKey(want.token) || got["label"] != want.label || got["token_type"] != "weir_api_key" {
				t.Errorf("match %d: got %v, want %s", i, got, want.label)
			}
		}
	}
	n.awaitLookup(t, acme.secret, nil)
	n.awaitLookup(t, strict.secret, identity.ErrRevoked)
	n.awaitLookup(t, urgent.secret, nil)
	for _, a := range []tenant{acme, strict, urgent} {
		got := p.must(t, 200, "GET", "/v1/api-keys/"+a.key, "")
		if exposures, _ := got.body["exposures"].([]any); len(exposures) != 1 || exposures[0].(map[string]any)["where"] != "https://code.example/x?weir_[redacted]&weir_[redacted]" {
			t.Errorf("%s is told as exposed by %v", a.key, exposures)
		}
		ends, _ := time.Parse(time.RFC3339Nano, got.get("expires_at"))
		if soon := time.Until(ends) < 24*time.Hour && time.Until(ends) > 23*time.Hour; soon != (a == urgent) {
			t.Errorf("%s ends at %q", a.key, got.get("expires_at"))
		}
	}
	s.oneByOne(t, p, n)
	s.allFail(t, p)
	p.stop()
	places := map[string]string{"the tables": w.dump(t), "the log": w.log.String()}
	for _, record := range w.follow(t).kept() {
		places["the topics"] += string(record.Key) + string(record.Value) + text(record.Headers)
	}
	for _, secret := range []string{acme.secret, strict.secret, urgent.secret, unknown} {
		for place, content := range places {
			if strings.Contains(content, secret[5:]) {
				t.Errorf("a token is in %s", place)
			}
		}
	}
}

// oneByOne checks that a match that fails does not save the keys
// after it, and that the sender may repeat the report.
func (s scanner) oneByOne(t *testing.T, p *process, n *neighbour) {
	t.Helper()
	w := p.world
	stuck, strict := p.tenant(t, "Stuck"), p.tenant(t, "Strict")
	p.must(t, 200, "PUT", "/v1/organizations/"+strict.organization+"/security-policy", `{"leaked_keys":"revoke","plain_http_keys":"flag"}`)
	w.sql(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stuck'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON api_keys FOR EACH ROW WHEN (OLD.id = '`+stuck.key+`') EXECUTE FUNCTION refuse()`)
	body := text([]any{map[string]string{"token": stuck.secret}, map[string]string{"token": strict.secret}})
	if status, _, answered := s.report(t, p, body, false); status != 500 || !strings.Contains(answered, "whole report again") {
		t.Errorf("got %d %s", status, answered)
	}
	n.awaitLookup(t, strict.secret, identity.ErrRevoked)
	w.sql(t, `DROP TRIGGER refuse ON api_keys`)
	if status, labels, answered := s.report(t, p, body, false); status != 200 || len(labels) != 2 || labels[0]["label"] != "true_positive" {
		t.Errorf("sent again: %d %s", status, answered)
	}
}

// allFail checks that a report that fails as a whole leaves
// one short line in the log, whatever its size.
func (s scanner) allFail(t *testing.T, p *process) {
	t.Helper()
	w := p.world
	w.sql(t, `ALTER TABLE api_keys RENAME TO away`)
	defer w.sql(t, `ALTER TABLE away RENAME TO api_keys`)
	matches := make([]any, 500)
	for i := range matches {
		matches[i] = map[string]string{"token": fmt.Sprintf("weir_%048x", i)}
	}
	if status, _, answered := s.report(t, p, text(matches), false); status != 500 {
		t.Errorf("got %d %s", status, answered)
	}
	for line := range strings.Lines(w.log.String()) {
		if len(line) > 2000 || strings.Contains(line, "of=500") && !strings.Contains(line, "missed=500") {
			t.Errorf("%d bytes are logged: %.300s", len(line), line)
		}
	}
}

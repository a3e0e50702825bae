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
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A key and its successor both work during the overlap,
// everywhere, for the same; then the old one expires.
func testRotation(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	p.must(t, 200, "PATCH", "/v1/api-keys/"+acme.key, `{"name":"Checkout","rate_per_minute":30}`)
	testenv.Eventually(t, func() error {
		if got := n.awaitLookup(t, acme.secret, nil); got.RatePerMinute != 30 {
			return fmt.Errorf("the limit in force is %d, want 30", got.RatePerMinute)
		}
		return nil
	})
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+acme.key+"/rotate", `{"overlap_seconds":3600}`)
	old, successor := n.awaitLookup(t, acme.secret, nil), n.awaitLookup(t, rotated.get("key"), nil)
	if old.ID = successor.ID; text(old) != text(successor) {
		t.Errorf("the successor is %+v, want it to be as %+v", successor, old)
	}
	for name, want := range map[string]string{"name": "Checkout", "replaces": acme.key, "environment": "prod"} {
		if rotated.get(name) != want {
			t.Errorf("%s of the successor is %q, want %q", name, rotated.get(name), want)
		}
	}
	before, _ := rotated.body["rotated"].(map[string]any)
	ends, err := time.Parse(time.RFC3339Nano, before["expires_at"].(string))
	if err != nil || before["rotated_to"] != rotated.get("id") || before["state"] != "active" || time.Until(ends) > time.Hour {
		t.Errorf("the old key is %v, %v", before, err)
	}
	at := p.must(t, 201, "POST", "/v1/api-keys/"+rotated.get("id")+"/rotate", `{"overlap_seconds":0}`)
	n.awaitLookup(t, rotated.get("key"), identity.ErrExpired)
	n.awaitLookup(t, at.get("key"), nil)
}

var errNotYet = errors.New("not yet")

// A key's access is limited from its creation or its
// change on, everywhere; its successor has the same.
func testAccessOfKeys(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	if got := n.awaitLookup(t, acme.secret, nil); got.Access != "" || got.ReadsNothing() {
		t.Errorf("a key of which nothing was said: %+v", got)
	}
	made := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "n", "access": "write"}))
	if got := n.awaitLookup(t, made.get("key"), nil); made.get("access") != "write" || !got.ReadsNothing() {
		t.Errorf("a key that only writes is told as %s, and known as %+v", made.text, got)
	}
	if got := p.must(t, 200, "PATCH", "/v1/api-keys/"+made.get("id"), `{"access":"project"}`); got.get("access") != "project" {
		t.Errorf("changed to %s", got.text)
	}
	testenv.Eventually(t, func() error { // another service reads the change a moment later
		if project, alone := n.awaitLookup(t, made.get("key"), nil).OnlyProject(); !alone || project != acme.project {
			return fmt.Errorf("the key reads %q alone: %t", project, alone)
		}
		return nil
	})
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+made.get("id")+"/rotate", `{"overlap_seconds":3600}`)
	if got := n.awaitLookup(t, rotated.get("key"), nil); rotated.get("access") != "project" || got.Access != "project" {
		t.Errorf("the successor is told as %s, and known as %+v", rotated.text, got)
	}
	for _, body := range []string{`{"access":"read"}`, `{"access":""}`} {
		if got := p.call(t, operatorToken, "PATCH", "/v1/api-keys/"+made.get("id"), body); got.status != 400 || pointersOf(got)[0] != "/access" {
			t.Errorf("PATCH %s: %d %s", body, got.status, got.text)
		}
		wanted := text(map[string]any{"project": acme.project, "environment": "dev", "name": "n"})
		if got := p.call(t, operatorToken, "POST", "/v1/api-keys", wanted[:len(wanted)-1]+","+body[1:]); got.status != 400 || pointersOf(got)[0] != "/access" {
			t.Errorf("POST %s: %d %s", body, got.status, got.text)
		}
	}
	audited := p.must(t, 200, "GET", "/v1/audit-events?organization="+acme.organization+"&limit=1000", "")
	if !strings.Contains(audited.text, `"api_key.changed"`) {
		t.Errorf("the audit lacks the change: %s", audited.text)
	}
}

// An ingestor publishes ingest's facts about keys.
type ingestor struct {
	t         *testing.T
	publisher *publisher.Publisher
	published int
}

func (w world) ingestor(t *testing.T) *ingestor {
	t.Helper()
	for _, topic := range contract.Topics(0, 0) {
		if slices.Contains([]string{contract.TopicIngest, contract.TopicAccounts, contract.TopicGrouping}, topic.Name) {
			testenv.Must(t, topics.Ensure(t.Context(), w.brokers, []contract.Topic{topic}))
		}
	}
	publisher, err := publisher.New(publisher.Config{Brokers: w.brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	t.Cleanup(func() { _ = publisher.Close() })
	return &ingestor{t: t, publisher: publisher}
}

func (i *ingestor) publish(topic, kind, key string, value any) {
	i.t.Helper()
	i.publishFor("", topic, kind, key, value)
}

func (i *ingestor) publishFor(organization, topic, kind, key string, value any) {
	i.t.Helper()
	encoded, err := json.Marshal(value)
	testenv.Must(i.t, err)
	i.published++
	m := message.NewMessage(fmt.Sprint(kind, "/", i.published), encoded)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: kind, Source: "weir/ingest", Time: time.Now(), Organization: organization}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err := i.publisher.PublishContext(i.t.Context(), topic, m); err != nil {
		i.t.Fatal(err)
	}
}

func (i *ingestor) used(used contract.KeyUsed) {
	i.publish(contract.TopicIngest, contract.TypeKeyUsed, used.APIKey, used)
}

func (i *ingestor) exposed(a tenant, how string) {
	i.publish(contract.TopicIngest, contract.TypeKeyExposed, a.key, contract.KeyExposed{
		Organization: a.organization, Project: a.project, APIKey: a.key, How: how, At: time.Now(), Address: "192.0.2.7"})
}

// awaitKey waits until a key is shown as expected.
func (p *process) awaitKey(t *testing.T, key string, holds func(answer) bool) (got answer) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got = p.must(t, 200, "GET", "/v1/api-keys/"+key, ""); !holds(got) {
			return fmt.Errorf("%w: %s", errNotYet, got.text)
		}
		return nil
	})
	return got
}

func usage(a answer) map[string]any {
	usage, _ := a.body["usage"].(map[string]any)
	return usage
}

// Published uses of keys add up, once per record, even across a restart;
// unknown ones change nothing, and impossible ones stop nothing.
func TestKeyUsageAddsUp(t *testing.T) {
	w := newWorld(t)
	i, p := w.ingestor(t), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	at := time.Now().UTC().Truncate(time.Millisecond)
	first := contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Accepted: 3, Rejected: 1,
		FirstAcceptedAt: &at, LastUsedAt: at, Address: "192.0.2.7", Client: "checkout/1"}
	i.used(first)
	p.awaitKey(t, acme.key, func(a answer) bool { return usage(a)["accepted"] == 3.0 })
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+acme.key+"/rotate", "")
	later := time.Now().Add(time.Second).UTC()
	second := first
	second.Accepted, second.Rejected, second.Refused, second.FirstAcceptedAt, second.LastUsedAt, second.Address = 2, 4, 1, &later, later, "192.0.2.8"
	i.used(second)
	i.used(contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Read: 6, LastUsedAt: at}) // before the rotation, published late
	i.used(contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Read: 5, LastUsedAt: later, Address: "192.0.2.8", Client: "checkout/1"})
	for _, nobody := range []contract.KeyUsed{
		{Organization: "org_other", APIKey: acme.key, Accepted: 100, LastUsedAt: later}, // another's name on our key
		{Organization: acme.organization, APIKey: "key_other", Accepted: 100, LastUsedAt: later},
		{Organization: "*", APIKey: acme.key, Accepted: 100, LastUsedAt: later},
		{Organization: acme.organization, APIKey: acme.key, Accepted: -100, LastUsedAt: later},
		{Organization: acme.organization, APIKey: acme.key, Read: -100, LastUsedAt: later},
	} {
		i.used(nobody)
	}
	i.publish(contract.TopicIngest, contract.TypeKeyUsed, acme.key, "no usage")
	i.publish(contract.TopicIngest, "weir.ingest.v1.of_the_future", acme.key, "anything")
	third := first
	third.APIKey, third.Accepted = rotated.get("id"), 7
	i.used(third)
	p.awaitKey(t, rotated.get("id"), func(a answer) bool { return usage(a)["accepted"] == 7.0 })
	p.stop()
	p = w.start(t, operatorToken)
	i.used(third)
	p.awaitKey(t, rotated.get("id"), func(a answer) bool { return usage(a)["accepted"] == 14.0 })
	got := p.must(t, 200, "GET", "/v1/api-keys/"+acme.key, "")
	want := map[string]any{
		"accepted": 5, "rejected": 5, "refused": 1, "read": 11, "since_rotation": map[string]any{"accepted": 2, "rejected": 4, "read": 5},
		"first_event_at": at, "last_used_at": later.Truncate(time.Microsecond), "last_used_from_address": "192.0.2.8", "last_used_by_client": "checkout/1",
	}
	if text(usage(got)) != text(want) {
		t.Errorf("usage is %s, want %s", text(usage(got)), text(want))
	}
	if users, _ := got.body["recent_users"].([]any); len(users) != 3 || users[0].(map[string]any)["address"] != "192.0.2.8" {
		t.Errorf("it was used by %v, want three, the last one first", users)
	}
}

// A key received in plaintext is flagged, and revoked everywhere by
// the organization's policy; a proxy's report never revokes anything.
func testExposedKeys(t *testing.T, p *process) {
	i, n := p.world.ingestor(t), p.world.follow(t)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	policy := "/v1/organizations/" + acme.organization + "/security-policy"
	expect(t, p.must(t, 200, "GET", policy, ""), map[string]any{
		"organization": acme.organization, "leaked_keys": "notify", "plain_http_keys": "flag", "passwords": "allowed", "set_at": nil})
	i.exposed(acme, contract.ExposedPlainHTTP)
	kinds := func(a answer) (kinds string) {
		exposures, _ := a.body["exposures"].([]any)
		for _, exposure := range exposures {
			kinds += fmt.Sprint(exposure.(map[string]any)["kind"], " ")
		}
		return kinds
	}
	p.awaitKey(t, acme.key, func(a answer) bool { return kinds(a) == "plain_http " && a.get("state") == "active" })

	expect(t, p.must(t, 200, "PUT", policy, `{"leaked_keys":"notify","plain_http_keys":"revoke"}`), map[string]any{
		"organization": acme.organization, "leaked_keys": "notify", "plain_http_keys": "revoke", "passwords": "allowed", "set_at": utc})
	i.exposed(acme, contract.ExposedForwarded)
	i.exposed(other, contract.ExposedPlainHTTP)
	i.publish(contract.TopicIngest, contract.TypeKeyExposed, acme.key, contract.KeyExposed{
		Organization: other.organization, APIKey: acme.key, How: contract.ExposedPlainHTTP}) // another's name on our key
	p.awaitKey(t, acme.key, func(a answer) bool { return kinds(a) == "plain_http forwarded_proto " && a.get("state") == "active" })
	p.awaitKey(t, other.key, func(a answer) bool { return kinds(a) == "plain_http " && a.get("state") == "active" })
	n.awaitLookup(t, acme.secret, nil)

	i.exposed(acme, contract.ExposedPlainHTTP)
	got := p.awaitKey(t, acme.key, func(a answer) bool { return a.get("state") == "revoked" })
	if got.get("revoked_reason") != "arrived over plain HTTP (security policy)" {
		t.Errorf("revoked for %q", got.get("revoked_reason"))
	}
	n.awaitLookup(t, acme.secret, identity.ErrRevoked)
	n.awaitLookup(t, other.secret, nil)
}

// A scanner finds secrets and signs what it reports.
type scanner struct{ key *ecdsa.PrivateKey }

func (w *world) scanner(t *testing.T) scanner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testenv.Must(t, err)
	w.leakKeys = filepath.Join(t.TempDir(), "keys.json")
	published := text(map[string]any{"public_keys": []any{map[string]any{
		"key_identifier": "one", "is_current": true, "key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	}}})
	testenv.Must(t, os.WriteFile(w.leakKeys, []byte(published), 0o600))
	return scanner{key}
}

// report sends a body, signed unless forged.
func (s scanner) report(t *testing.T, p *process, body string, forged bool) (status int, labels []map[string]string, answered string) {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	testenv.Must(t, err)
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
		testenv.Must(t, json.Unmarshal(recorder.Body.Bytes(), &labels))
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

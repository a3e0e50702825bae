package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A replica starts with the credentials and accounts in WEIR_STATE_DIR:
// it admits the same keys and gets revocations since.
func TestStateIsKept(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	good, doomed := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_a", func(c *contract.Credential) { c.ID = "doomed" })
	dir := t.TempDir()
	keeping := func(c *app.Config) { c.StateDir = dir }
	p := r.start(keeping)
	for _, key := range []string{good, doomed} {
		if a := p.post(key, bodyOf(entry("m"))); a.status != 200 {
			t.Fatalf("answered %d %s", a.status, a.code())
		}
	}
	p.stop()
	kept, err := filepath.Glob(filepath.Join(dir, "ingest", "*.state"))
	if err != nil || len(kept) != 4 {
		t.Fatalf("kept %v (%v), want credentials, accounts, projects and rules", kept, err)
	}
	r.Publish(contract.TopicCredentials, contract.CredentialKey(doomed), nil, nil)
	p = r.start(keeping)
	if a := p.post(good, bodyOf(entry("m"))); a.status != 200 {
		t.Errorf("a key that was kept is answered %d %s", a.status, a.code())
	}
	if a := p.post(doomed, bodyOf(entry("m"))); a.status != 401 {
		t.Errorf("a key that was removed meanwhile is answered %d", a.status)
	}
}

// compared publishes the marker of tenants.
func (r *rig) compared() {
	r.t.Helper()
	r.PublishEvent(contract.TopicCredentials, contract.TypeCredentialsCompared, contract.CredentialsComparedKey, contract.CredentialsCompared{})
}

// answers checks that keys are answered with a status.
func (p *replica) answers(keys map[string]int) {
	p.t.Helper()
	for key, want := range keys {
		if got := p.post(key, bodyOf(entry("m"))); got.status != want {
			p.t.Errorf("answered %d %s, want %d", got.status, got.text, want)
		}
	}
}

// No start admits a revoked key because the log lost its revocation:
// nothing is, until tenants has published that again. Where nothing was
// lost, ingest starts without tenants.
func TestALostRevocationHolds(t *testing.T) {
	f := bustest.NewForgetful(t)
	r := newRigOn(t, f.Brokers())
	r.account("org_a", nil)
	good, leaked := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_a", func(c *contract.Credential) { c.ID = "leaked" })
	revoke := func() {
		r.PublishEvent(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(leaked), contract.Credential{
			Kind: contract.CredentialAPIKey, ID: "leaked", Organization: "org_a", Project: "prj_a", State: contract.CredentialRevoked, Version: 2,
		})
	}
	r.compared()
	for range 2 {
		p := r.start(nil)
		p.answers(map[string]int{good: 200, leaked: 200})
		p.stop()
	}
	f.Remember()
	revoke()
	p := r.start(nil)
	p.answers(map[string]int{leaked: 401})
	pool, err := pg.Open(t.Context(), string(r.config.DatabaseURL), postgres.Schema)
	testenv.Must(t, err)
	bustest.MarksKept(t, pool, f.Brokers(), contract.TopicCredentials)
	pool.Close()
	p.stop()

	f.Forget(func() {})
	for range 2 {
		p = r.begin(nil)
		testenv.Eventually(t, func() error {
			p.answers(map[string]int{good: 500, leaked: 500})
			if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "has lost records that were read before") {
				return fmt.Errorf("the loss is not noticed: %w", err)
			}
			return nil
		})
		p.answers(map[string]int{good: 500, leaked: 500})
		p.stop()
	}
	p = r.begin(nil)
	revoke()
	r.compared()
	testenv.Eventually(t, p.Ready)
	p.answers(map[string]int{good: 200, leaked: 401})
}

// keyFacts are the published facts about keys.
type keyFacts struct {
	mu      sync.Mutex
	used    []contract.KeyUsed
	exposed []contract.KeyExposed
	raw     string
}

// keyFacts follows weir.ingest.v1.
func (r *rig) keyFacts() *keyFacts {
	r.t.Helper()
	n := &keyFacts{}
	r.Consume(contract.TopicIngest, func(record bus.Record) {
		n.mu.Lock()
		defer n.mu.Unlock()
		var used contract.KeyUsed
		var exposed contract.KeyExposed
		n.raw += string(record.Key) + string(record.Value)
		switch record.Header(contract.HeaderType) {
		case contract.TypeKeyUsed:
			if json.Unmarshal(record.Value, &used) == nil && string(record.Key) == used.APIKey {
				n.used = append(n.used, used)
			}
		case contract.TypeKeyExposed:
			if json.Unmarshal(record.Value, &exposed) == nil && string(record.Key) == exposed.APIKey {
				n.exposed = append(n.exposed, exposed)
			}
		}
	})
	return n
}

// until waits until the published facts satisfy holds.
func (n *keyFacts) until(t *testing.T, holds func() bool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !holds() {
			return fmt.Errorf("published of uses: %+v, of exposures: %+v", n.used, n.exposed)
		}
		return nil
	})
}

// A key's first use is published at once, the rest at the end of the
// process, with the sums of the answers.
func TestKeyUsesArePublished(t *testing.T) {
	r := newRig(t)
	r.account("org_1", nil)
	secret := r.key("org_1", "prj_1", nil)
	p, n := r.start(nil), r.keyFacts()
	good := []byte(`{"logs":[` + entry("m") + `]}`)
	if got := p.post(secret, good, "User-Agent", "checkout/1"); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.text)
	}
	n.until(t, func() bool {
		return len(n.used) == 1 && n.used[0].Accepted == 1 && n.used[0].Client == "checkout/1" && n.used[0].Address == "127.0.0.1"
	})
	for range 3 {
		p.post(secret, good)
	}
	p.post(secret, []byte(`{}`))
	p.stop()
	n.until(t, func() bool {
		var accepted, rejected int64
		for _, used := range n.used {
			accepted, rejected = accepted+used.Accepted, rejected+used.Rejected
		}
		return accepted == 4 && rejected == 1
	})
	if strings.Contains(n.raw, secret[5:]) {
		t.Error("the key is on the topic")
	}
}

// A key sent over plain HTTP, even if only a proxy reports that, is
// published as exposed; an unknown key never.
func TestExposedKeysAreSaid(t *testing.T) {
	r := newRig(t)
	r.account("org_1", nil)
	plaintext, byWord, byGateway, safe := r.key("org_1", "prj_1", nil), r.key("org_1", "prj_1", nil), r.key("org_1", "prj_1", nil), r.key("org_1", "prj_1", nil)
	own, behind, n := r.start(nil), r.start(func(c *app.Config) { c.TrustedProxies = []string{"127.0.0.1"} }), r.keyFacts()
	send := func(p *replica, url, key string, headers ...string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/logs", bytes.NewReader(nil))
		testenv.Must(t, err)
		request.Header.Set("x-api-key", key)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := p.client.Do(request)
		testenv.Must(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	plain := func(p *replica) string { return "http://" + p.Addr() }
	send(own, plain(own), "weir_"+strings.Repeat("0", 48))
	send(own, plain(own), plaintext)
	send(own, own.url, safe, "X-Forwarded-Proto", "http", "Weir-Received-In-Clear", "1") // an outsider's word
	send(behind, behind.url, byWord, "X-Forwarded-Proto", "http")
	send(behind, behind.url, byGateway, "Weir-Received-In-Clear", "1", "X-Forwarded-For", "198.51.100.7")
	id := func(secret string) string { return "id_" + secret[5:13] }
	want := []string{id(plaintext) + " plain_http 127.0.0.1", id(byWord) + " forwarded_proto 127.0.0.1", id(byGateway) + " plain_http 198.51.100.7"}
	slices.Sort(want)
	n.until(t, func() bool {
		var got []string
		for _, exposed := range n.exposed {
			got = append(got, exposed.APIKey+" "+exposed.How+" "+exposed.Address)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// Reads count as uses of the key, separately, even refused ones.
func TestReadsAreUses(t *testing.T) {
	r := newRig(t)
	r.account("org_1", nil)
	secret, write := r.key("org_1", "prj_1", nil), r.key("org_1", "prj_1", func(c *contract.Credential) { c.Access = contract.AccessWrite })
	revoked := r.key("org_1", "prj_1", func(c *contract.Credential) { c.State = contract.CredentialRevoked })
	p, n := r.start(nil), r.keyFacts()
	for range 3 {
		p.get(secret, "/v1/logs")
	}
	p.get(write, "/v1/logs")
	p.get(revoked, "/v1/logs")
	p.stop()
	n.until(t, func() bool {
		sums := map[string][4]int64{}
		for _, used := range n.used {
			sum := sums[used.APIKey]
			sums[used.APIKey] = [4]int64{sum[0] + used.Accepted, sum[1] + used.Rejected, sum[2] + used.Refused, sum[3] + used.Read}
			if used.FirstAcceptedAt != nil {
				t.Errorf("a read is published as a first event: %+v", used)
			}
		}
		id := func(secret string) string { return "id_" + secret[5:13] }
		return sums[id(secret)] == [4]int64{3: 3} && sums[id(write)] == [4]int64{1: 1} && sums[id(revoked)] == [4]int64{2: 1}
	})
}

package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

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
	p.stop()

	f.Forget(func() {})
	for range 2 {
		p = r.begin(nil)
		testenv.Eventually(t, waitTimeout, func() error {
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
	testenv.Eventually(t, waitTimeout, p.Ready)
	p.answers(map[string]int{good: 200, leaked: 401})
}

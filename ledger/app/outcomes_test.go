package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/testenv"
)

// refused is a refusal by a replica of ingest with a quota.
func refused(organization, request string, quota int64) contract.QuotaRefused {
	now := time.Now().UTC()
	return contract.QuotaRefused{
		Organization: organization, Project: organization + "-project", APIKey: "key", Environment: "prod", RequestID: request, At: now, Bytes: 500,
		Remaining: 272, PeriodStart: calendar.PeriodAt(now, 1).Start, Quota: quota, Exhausts: true, Requests: 1,
	}
}

// A refusal by one replica of ingest exhausts the account for all,
// although something is left.
func TestARefusalExhaustsTheAccount(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.create("other", "indie")
	r.awaitAccount("acme")
	r.awaitAccount("other")
	r.Accept(logs("acme", 728))
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused("acme", "req_1", 1000))
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused("acme", "req_1", 1000))  // again
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "other", refused("other", "req_2", 999)) // it had an outdated quota
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "nobody", refused("nobody", "req_3", 999))
	testenv.Eventually(t, waitTimeout, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if got := r.accounts["acme"]; got.State != contract.AccountExhausted || got.Used != 728 {
			return fmt.Errorf("account %+v", got)
		}
		return nil
	})
	if events := r.awaitEvents(2); len(events) != 2 || !contains(events, "exhausted/req_1") {
		t.Errorf("events %v", events)
	}
	token := r.token("acme", "billing:read")
	testenv.Eventually(t, waitTimeout, func() error {
		if status, body := get(t, ledger, token, "/v1/organizations/acme/balance"); status != http.StatusOK || body["state"] != contract.AccountExhausted || body["remaining"] != 272.0 {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	if got := r.awaitCounted()["other"]; got.State != contract.AccountActive {
		t.Errorf("what a stale replica refused: %+v", got)
	}
	r.verify()
}

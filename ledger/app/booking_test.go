package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Clients wait for what they sent.
func TestWaits(t *testing.T) {
	r, ledger, token := billed(t)
	t.Run("WhatTheLogDoesNotHave", func(t *testing.T) { testWhatTheLogDoesNotHaveIsNotAwaited(t, ledger, token) })
	t.Run("OwnWrites", func(t *testing.T) { testOwnWritesAreFound(t, r, ledger, token) })
	t.Run("ABatch", func(t *testing.T) { testABatchIsWaitedFor(t, r, ledger, token) })
}

// A client that waits finds everything acknowledged before, and how far
// the log is booked and checked.
func testOwnWritesAreFound(t *testing.T, r *rig, ledger *app.App, token string) {
	const path = "/v1/organizations/acme/balance"
	for i := range 20 {
		r.Accept(logs("acme", 10))
		testenv.Eventually(t, waitTimeout, func() error { // a busy machine may exceed the wait
			status, balance := get(t, ledger, token, path+"?wait=true")
			if status == http.StatusInternalServerError && balance["code"] == "unavailable" {
				return errors.New("not booked yet")
			}
			if status != http.StatusOK || balance["consumed"] != float64(10*(i+1)) {
				t.Fatalf("%d sent, and the balance is %d %v", i+1, status, balance)
			}
			return nil
		})
	}
	var through string
	for partition, end := range r.End() {
		through += fmt.Sprintf("%d:%d,", partition, end)
	}
	status, balance := get(t, ledger, token, path+"?min_offset="+through[:len(through)-1])
	if status != http.StatusOK || balance["verified_through"] == nil {
		t.Errorf("%d %v", status, balance)
	}
	testenv.Eventually(t, waitTimeout, func() error {
		if _, balance = get(t, ledger, token, path); balance["as_of"].(map[string]any)["behind"] != 0.0 || balance["lag_ms"] != 0.0 {
			return fmt.Errorf("%v", balance)
		}
		return nil
	})
	then := "?at=" + time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)
	if status, balance := get(t, ledger, token, path+then); status != http.StatusOK || balance["as_of"].(map[string]any)["behind"] != nil || balance["lag_ms"] != nil {
		t.Errorf("of then: %d %v", status, balance)
	}
	for _, query := range []string{"?wait=yes", "?batch=1", "?batch=%7B" + uuid.NewString() + "%7D", "?batch=urn:uuid:" + uuid.NewString(), "?min_offset=x", "?min_offset=1", "?min_offset=1:-2", "?min_offset=-1:2", "?min_offset=1:2,"} {
		if status, answer := get(t, ledger, token, path+query); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", query, status, answer)
		}
	}
}

// A client that waits for a batch learns whether it is charged to the
// organization, whatever others send.
func testABatchIsWaitedFor(t *testing.T, r *rig, ledger *app.App, token string) {
	const path = "/v1/organizations/acme/balance?batch="
	_, before := get(t, ledger, token, "/v1/organizations/acme/balance")
	consumed := before["consumed"].(float64) + 10
	sent := logs("acme", 10)
	r.Accept(sent)
	testenv.Eventually(t, waitTimeout, func() error { // a busy machine may exceed the wait
		status, balance := get(t, ledger, token, path+sent.Batch)
		if status == http.StatusInternalServerError && balance["code"] == "unavailable" {
			return errors.New("not booked yet")
		}
		if status != http.StatusOK || balance["consumed"] != consumed || balance["batch_charged"] != true {
			t.Fatalf("the balance is %d %v", status, balance)
		}
		return nil
	})
	partial, foreign := logs("acme", 10), logs("other", 10)
	partial.Parts = 2
	r.Accept(partial, foreign)
	r.awaitCounted()
	for _, batch := range []string{partial.Batch, foreign.Batch, logs("acme", 10).Batch, uuid.NewString()} {
		status, balance := get(t, ledger, token, path+batch)
		if status != http.StatusOK || balance["batch_charged"] != false || balance["consumed"] != consumed {
			t.Errorf("batch %s: %d %v", batch, status, balance)
		}
	}
}

// Who waits for what the log does not have learns so at once.
func testWhatTheLogDoesNotHaveIsNotAwaited(t *testing.T, ledger *app.App, token string) {
	for _, beyond := range []string{"0:1000000", "1000:1"} {
		partition, _, _ := strings.Cut(beyond, ":")
		says := fmt.Sprintf("min_offset is %s, but partition %s of %s ends at 0.", beyond, partition, contract.TopicLogs)
		status, answer := get(t, ledger, token, "/v1/organizations/acme/balance?min_offset="+beyond)
		if detail, _ := answer["detail"].(string); status != http.StatusBadRequest || !strings.Contains(detail, says) {
			t.Errorf("%d %v, want 400 that says %q", status, answer, says)
		}
	}
}

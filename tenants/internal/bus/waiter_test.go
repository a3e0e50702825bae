package bus

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// forever is longer than any test may take.
const forever = time.Hour

func newCredentialWaiter(patience time.Duration, wake func()) *CredentialWaiter {
	return NewCredentialWaiter(identity.NewCredentials(time.Now), wake, patience, slog.New(slog.DiscardHandler))
}

func credentialRecord(t *testing.T, key, state string, version int64) weirbus.Record {
	t.Helper()
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, State: state, Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return weirbus.Record{Key: []byte(key), Value: value}
}

func changed() (bool, error) { return true, nil }

// A change passes when its own credential is in the state that it asked for, and wakes the relay to get there.
func TestGateWaitsForTheState(t *testing.T) {
	woken := make(chan struct{}, 1)
	waiter := newCredentialWaiter(forever, func() { woken <- struct{}{} })
	passed := make(chan error, 1)
	go func() { passed <- waiter.Pass(t.Context(), "k", contract.CredentialRevoked, changed) }()
	<-woken
	for _, record := range []weirbus.Record{
		credentialRecord(t, "other", contract.CredentialRevoked, 2),
		credentialRecord(t, "k", contract.CredentialActive, 1),
		{Key: []byte("k"), Value: []byte("{")},
		{Key: []byte("k")},
	} {
		waiter.Apply(record)
		select {
		case err := <-passed:
			t.Fatalf("passed after %s %s: %v", record.Key, record.Value, err)
		default:
		}
	}
	waiter.Apply(credentialRecord(t, "k", contract.CredentialRevoked, 2))
	waiter.Apply(credentialRecord(t, "k", contract.CredentialRevoked, 2))
	if err := <-passed; err != nil {
		t.Error(err)
	}
	noneWaits(t, waiter)
}

// What comes back before the change has returned is not missed.
func TestGateDoesNotMissWhatIsQuick(t *testing.T) {
	waiter := newCredentialWaiter(forever, func() {})
	err := waiter.Pass(t.Context(), "k", contract.CredentialActive, func() (bool, error) {
		waiter.Apply(credentialRecord(t, "k", contract.CredentialActive, 1))
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
	noneWaits(t, waiter)
}

// What failed, or changed nothing, waits for nothing.
func TestGateWaitsOnlyForChanges(t *testing.T) {
	waiter := newCredentialWaiter(forever, func() { t.Error("the relay was woken") })
	failure := errors.New("no")
	if err := waiter.Pass(t.Context(), "k", contract.CredentialActive, func() (bool, error) { return true, failure }); !errors.Is(err, failure) {
		t.Errorf("a failure: got %v", err)
	}
	if err := waiter.Pass(t.Context(), "k", contract.CredentialActive, func() (bool, error) { return false, nil }); err != nil {
		t.Errorf("no change: got %v", err)
	}
	noneWaits(t, waiter)
}

// A broker that is away makes an answer late, not wrong: the change is kept.
func TestGateLosesPatience(t *testing.T) {
	waiter := newCredentialWaiter(time.Millisecond, func() {})
	if err := waiter.Pass(t.Context(), "k", contract.CredentialActive, changed); err != nil {
		t.Errorf("without a broker: got %v", err)
	}
	waiter = newCredentialWaiter(forever, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waiter.Pass(ctx, "k", contract.CredentialActive, changed); err != nil {
		t.Errorf("a client that went away: got %v", err)
	}
	noneWaits(t, waiter)
}

func noneWaits(t *testing.T, waiter *CredentialWaiter) {
	t.Helper()
	if len(waiter.waiting) != 0 {
		t.Errorf("%d keys are still waited for", len(waiter.waiting))
	}
}

package bus

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// forever exceeds any test.
const forever = time.Hour

func newCredentialWaiter(timeout time.Duration) *CredentialWaiter {
	return NewCredentialWaiter(identity.NewCredentials(time.Now), func() {}, timeout, slog.New(slog.DiscardHandler))
}

func credentialRecord(t *testing.T, key, state string, version int64) weirbus.Record {
	t.Helper()
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, State: state, Version: version})
	testenv.Must(t, err)
	return weirbus.Record{Key: []byte(key), Value: value, Headers: []weirbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeCredentialChanged)}}}
}

func ofUnknownType(r weirbus.Record) weirbus.Record {
	r.Headers[0].Value = []byte("weir.credentials.v9.merged")
	return r
}

func awaited(state string) Awaited { return Awaited{Key: "k", State: state, Version: 2} }

// A watch ends when its own credential has the expected state and version.
func TestWatchWaitsForTheState(t *testing.T) {
	waiter := newCredentialWaiter(forever)
	watch := waiter.Watch(awaited(contract.CredentialRevoked))
	passed := make(chan struct{})
	go func() { watch.Wait(t.Context()); close(passed) }()
	for _, record := range []weirbus.Record{
		credentialRecord(t, "other", contract.CredentialRevoked, 2),
		credentialRecord(t, "k", contract.CredentialActive, 2),
		credentialRecord(t, "k", contract.CredentialRevoked, 1),
		ofUnknownType(credentialRecord(t, "k", contract.CredentialRevoked, 2)),
		{Key: []byte("k"), Value: []byte("{")},
		{Key: []byte("k")},
	} {
		waiter.Apply(record)
		select {
		case <-passed:
			t.Fatalf("passed after %s %s", record.Key, record.Value)
		default:
		}
	}
	waiter.Apply(credentialRecord(t, "k", contract.CredentialRevoked, 3))
	waiter.Apply(credentialRecord(t, "k", contract.CredentialRevoked, 3))
	<-passed
	watch.Stop()
	noneWaits(t, waiter)
}

// What is read back before the wait is not missed.
func TestWatchDoesNotMissWhatIsQuick(t *testing.T) {
	waiter := newCredentialWaiter(forever)
	watch := waiter.Watch(awaited(contract.CredentialActive))
	waiter.Apply(credentialRecord(t, "k", contract.CredentialActive, 2))
	watch.Wait(t.Context())
	watch.Stop()
	noneWaits(t, waiter)
}

// An outage of the broker makes an answer
// late, not wrong: the change is stored.
func TestWatchLosesPatience(t *testing.T) {
	watch := newCredentialWaiter(time.Millisecond).Watch(awaited(contract.CredentialActive))
	watch.Wait(t.Context())
	waiter := newCredentialWaiter(forever)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	watch = waiter.Watch(awaited(contract.CredentialActive))
	watch.Wait(ctx) // a client that went away
	watch.Stop()
	noneWaits(t, waiter)
}

func noneWaits(t *testing.T, waiter *CredentialWaiter) {
	t.Helper()
	if len(waiter.waiting) != 0 {
		t.Errorf("%d keys are still waited for", len(waiter.waiting))
	}
}

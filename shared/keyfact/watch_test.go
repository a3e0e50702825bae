package keyfact

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

func apply(t *testing.T, credentials *identity.Credentials, secret string, credential contract.Credential) {
	t.Helper()
	value, err := json.Marshal(credential)
	testenv.Must(t, err)
	testenv.Must(t, credentials.Apply(contract.CredentialKey(secret), value))
}

// Only a valid key is published, once per interval; other texts are not.
func TestWatchPublishesValidKeys(t *testing.T) {
	now := start
	clock := func() time.Time { return now }
	credentials := identity.NewCredentials(clock)
	secret := func(digit string) string { return "weir_" + strings.Repeat(digit, 48) }
	active := contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_a", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive, Version: 1}
	revoked, expired, token := active, active, active
	revoked.State, expired.ExpiresAt, token.Kind = contract.CredentialRevoked, &start, contract.CredentialServiceToken
	apply(t, credentials, secret("a"), active)
	apply(t, credentials, secret("b"), revoked)
	apply(t, credentials, secret("c"), expired)
	apply(t, credentials, "weirsvc_"+strings.Repeat("d", 48), token)
	var published []contract.KeyExposed
	var failure error
	w := NewWatch(credentials, func(_ context.Context, exposed contract.KeyExposed) error {
		if failure == nil {
			published = append(published, exposed)
		}
		return failure
	}, clock, slog.New(slog.DiscardHandler))
	see := func(request httpapi.PlaintextRequest) {
		w.See(request)
		w.look(t.Context(), <-w.seen)
	}
	for _, key := range []string{"x", secret("b"), secret("c"), secret("e"), "weirsvc_" + strings.Repeat("d", 48)} {
		see(httpapi.PlaintextRequest{Key: key})
	}
	if len(published) != 0 {
		t.Errorf("published %+v of what is no key that works", published)
	}
	failure = errors.New("no broker")
	see(httpapi.PlaintextRequest{Key: secret("a")})
	failure = nil
	see(httpapi.PlaintextRequest{Key: secret("a"), Address: home, Client: "curl\x00"})
	see(httpapi.PlaintextRequest{Key: secret("a")})
	see(httpapi.PlaintextRequest{Key: secret("a"), Forwarded: true})
	now = now.Add(exposedEvery)
	see(httpapi.PlaintextRequest{Key: secret("a")})
	want := contract.KeyExposed{Organization: "org_1", Project: "prj_1", APIKey: "key_a", How: contract.ExposedPlainHTTP, At: start, Address: "192.0.2.7", Client: "curl"}
	if len(published) != 3 || published[0] != want || published[1].How != contract.ExposedForwarded || published[2].How != contract.ExposedPlainHTTP {
		t.Errorf("published %+v", published)
	}
}

// A flood is dropped; See never waits.
func TestSeeNeverWaits(t *testing.T) {
	w := NewWatch(identity.NewCredentials(time.Now), nil, time.Now, slog.New(slog.DiscardHandler))
	for range 10 * maxSeen {
		w.See(httpapi.PlaintextRequest{Key: "x"})
	}
	if len(w.seen) != maxSeen {
		t.Errorf("%d wait, want %d", len(w.seen), maxSeen)
	}
}

package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// Every request with a known key is counted once by its outcome; others are not.
func TestUsesAreCounted(t *testing.T) {
	log := &memoryLog{}
	in := newIntake(t, log, plenty)
	ended := "weir_" + strings.Repeat("cd", 24)
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1", State: contract.CredentialRevoked})
	if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(ended), value) != nil {
		t.Fatal(err)
	}
	post := func(body, key string, want int) {
		t.Helper()
		r := newPost(bytes.NewReader([]byte(body)), "User-Agent", "checkout/1")
		r.RemoteAddr = "192.0.2.7:1234"
		r.Header.Set("X-Api-Key", key)
		if key == "" {
			r.Header.Del("X-Api-Key")
		}
		if got := serve(in, r); got.Code != want {
			t.Fatalf("%s with %q: %d %s", body, key, got.Code, got.Body)
		}
	}
	good := `{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"m"}]}`
	post(good, secret, http.StatusOK)
	post(strings.Replace(good, "{", `{"api_key":"`+secret+`",`, 1), "", http.StatusOK)
	post(`{}`, secret, http.StatusBadRequest)
	post(good, ended, http.StatusUnauthorized)
	post(good, "weir_"+strings.Repeat("ef", 24), http.StatusUnauthorized)
	post(`{}`, "", http.StatusUnauthorized)
	log.err = errors.New("no broker")
	post(good, secret, http.StatusInternalServerError)
	var mu sync.Mutex // uses of several keys are published at once
	published := map[string]contract.KeyUsed{}
	in.Service.Meter.Flush(t.Context(), func(_ context.Context, used contract.KeyUsed) error {
		mu.Lock()
		defer mu.Unlock()
		published[used.APIKey] = used
		return nil
	})
	used := contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Accepted: 2, Rejected: 2, LastUsedAt: start,
		Address: "192.0.2.7", Client: "checkout/1"}
	refused := used
	refused.APIKey, refused.Accepted, refused.Rejected, refused.Refused = "key_2", 0, 0, 1
	got := published["key_1"]
	if got.FirstAcceptedAt == nil || !got.FirstAcceptedAt.Equal(start.In(time.UTC)) {
		t.Errorf("first accepted at %v", got.FirstAcceptedAt)
	}
	if got.FirstAcceptedAt = nil; got != used || published["key_2"] != refused || len(published) != 2 {
		t.Errorf("published %+v", published)
	}
}

//go:build browser

package browser

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weirlog/weir/shared/testenv"
)

// A hook takes messages to a webhook, and verifies their signatures.
type hook struct {
	*httptest.Server

	mu     sync.Mutex
	secret string
	types  map[string]bool
	wrong  error
}

// newHook is a hook that installations started from now on may reach.
func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{types: map[string]bool{}}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(h.take))
	t.Cleanup(h.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600))
	t.Setenv("WEIR_WEBHOOK_CA_FILE", authority)
	t.Setenv("WEIR_WEBHOOK_NETWORKS", "127.0.0.0/8")
	return h
}

func (h *hook) trust(secret string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secret = secret
}

func (h *hook) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var payload struct{ Type string }
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = errors.Join(h.wrong, err, h.verify(body, r.Header), json.Unmarshal(body, &payload))
	h.types[payload.Type] = true
}

func (h *hook) verify(body []byte, header http.Header) error {
	verifier, err := standardwebhooks.NewWebhook(h.secret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, header)
}

// await waits until messages of all types have come.
func (h *hook) await(t *testing.T, types []string) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, want := range types {
			if !h.types[want] {
				return fmt.Errorf("no %s has come, but %v", want, h.types)
			}
		}
		return h.wrong
	})
}

package webhooktest

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weirlog/weir/shared/testenv"
)

// A Receiver takes messages over TLS, and verifies their signatures.
type Receiver struct {
	URL       string
	Authority string // file with the certificate that signs the receiver's

	refusals int
	mu       sync.Mutex
	secret   string
	seen     map[string]int    // how often, by id
	types    map[string]string // by id
	wrong    error
}

// New starts a receiver until the test ends. It refuses each message so
// many times, and then accepts it.
func New(t testing.TB, refusals int) *Receiver {
	t.Helper()
	r := &Receiver{refusals: refusals, seen: map[string]int{}, types: map[string]string{}}
	r.URL, r.Authority = Serve(t, r)
	return r
}

// Serve receives by a handler over TLS until the test ends. Its own
// certificate is signed by the one in the file authority.
func Serve(t testing.TB, handler http.Handler) (url, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testenv.Must(t, os.WriteFile(authority, certificate, 0o600))
	return server.URL, authority
}

// Trust sets a webhook's secret to verify messages by.
func (r *Receiver) Trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// ServeHTTP accepts or refuses a message.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var payload struct{ Type string }
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = errors.Join(r.wrong, err, r.verify(body, request.Header), json.Unmarshal(body, &payload))
	id := request.Header.Get(standardwebhooks.HeaderWebhookID)
	r.seen[id]++
	r.types[id] = payload.Type
	if r.seen[id] <= r.refusals {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (r *Receiver) verify(body []byte, header http.Header) error {
	verifier, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, header)
}

// Types returns the types of the received messages, by id, and how
// often each came. It fails if any signature or body was wrong.
func (r *Receiver) Types() (types map[string]string, seen map[string]int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.types), maps.Clone(r.seen), r.wrong
}

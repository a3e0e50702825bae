package leak_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/leak"
)

// published is a document with one key, as GitHub publishes it.
func published(t *testing.T, id string, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	testenv.Must(t, err)
	text, err := json.Marshal(map[string]any{"public_keys": []map[string]any{
		{"key_identifier": id, "key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "is_current": true},
	}})
	testenv.Must(t, err)
	return string(text)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	return key
}

func sign(t *testing.T, key *ecdsa.PrivateKey, body string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	testenv.Must(t, err)
	return base64.StdEncoding.EncodeToString(signature)
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	testenv.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Only the exact bytes signed by a known key pass.
func TestVerify(t *testing.T) {
	key, body := newKey(t), `[{"token": "x"}]`
	keys, err := leak.ReadKeys(file(t, published(t, "one", &key.PublicKey)))
	testenv.Must(t, err)
	good := sign(t, key, body)
	for name, c := range map[string]struct {
		id, signature, body string
		want                error
	}{
		"signed":                   {"one", good, body, nil},
		"other white space":        {"one", good, `[{"token":"x"}]`, leak.ErrSignature},
		"another key's id":         {"two", good, body, leak.ErrSignature},
		"signed by somebody else":  {"one", sign(t, newKey(t), body), body, leak.ErrSignature},
		"no signature":             {"one", "", body, leak.ErrSignature},
		"a signature without form": {"one", "!", body, leak.ErrSignature},
		"nothing at all":           {"", "", "", leak.ErrSignature},
	} {
		if err := keys.Verify(t.Context(), c.id, c.signature, []byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A file without a usable key is refused at the start.
func TestReadKeysRefuses(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	testenv.Must(t, err)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	testenv.Must(t, err)
	for name, text := range map[string]string{
		"no JSON": "x", "no keys": `{"public_keys": []}`, "no PEM": `{"public_keys": [{"key_identifier": "a", "key": "b"}]}`,
		"RSA": published(t, "one", &weak.PublicKey), "P-384": published(t, "one", &other.PublicKey),
	} {
		if _, err := leak.ReadKeys(file(t, text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Keys are fetched on first use, and cached. A new key is found
// a minute later, and made-up ids cause no more requests.
// During an outage, the old keys stay valid for a day.
func TestFetchKeys(t *testing.T) {
	first, second := newKey(t), newKey(t)
	var asked atomic.Int32
	var answer atomic.Value
	answer.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		text, _ := answer.Load().(string)
		if text == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	keys := leak.FetchKeys(server.URL, func() time.Time { return now })
	verify := func(id string, key *ecdsa.PrivateKey, want error, times int32) {
		t.Helper()
		if err := keys.Verify(t.Context(), id, sign(t, key, "[]"), []byte("[]")); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
		if asked.Load() != times {
			t.Errorf("asked %d times, want %d", asked.Load(), times)
		}
	}
	verify("one", first, leak.ErrUnavailable, 1)
	verify("one", first, leak.ErrUnavailable, 1) // not again so soon
	answer.Store(published(t, "one", &first.PublicKey))
	now = now.Add(time.Minute)
	verify("one", first, nil, 2)
	verify("one", first, nil, 2)
	verify(strings.Repeat("x", 100), first, leak.ErrSignature, 2)
	answer.Store(published(t, "two", &second.PublicKey))
	now = now.Add(time.Minute)
	verify("two", second, nil, 3)
	answer.Store("")
	now = now.Add(2 * time.Hour)
	verify("two", second, nil, 4)
	now = now.Add(22 * time.Hour)
	verify("two", second, leak.ErrUnavailable, 5)
}

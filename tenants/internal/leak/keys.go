package leak

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// GitHubKeys is where GitHub publishes the keys that sign its reports.
const GitHubKeys = "https://api.github.com/meta/public_keys/secret_scanning"

// ErrSignature means that none of the keys signed a report.
var ErrSignature = errors.New("the report is not signed by a key that is known")

// ErrUnavailable means that the keys can't be fetched now.
var ErrUnavailable = errors.New("the keys that reports are signed with can't be fetched now")

const (
	fetchTimeout = 5 * time.Second
	maxKeysFile  = 256 << 10
	refreshAfter = time.Hour      // how long fetched keys are used before they are fetched again
	maxStale     = 24 * time.Hour // how long they are used if that fails: one may have been withdrawn since
	fetchPause   = time.Minute    // between fetches, of all requests: see key
)

// Keys are the public keys that sign reports. Safe for concurrent use.
type Keys struct {
	url   string // empty: read from a file
	clock func() time.Time

	mu      sync.Mutex
	byID    map[string]*ecdsa.PublicKey // bounded by the published keys, of which there are few
	fetched time.Time
	tried   time.Time
}

// FetchKeys returns the keys published at an
// HTTPS address; they are fetched on first use.
func FetchKeys(url string, clock func() time.Time) *Keys {
	return &Keys{url: url, clock: clock}
}

// ReadKeys reads keys from a file in GitHub's format.
func ReadKeys(file string) (*Keys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys of leak reports: %w", err)
	}
	byID, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys of leak reports in %q: %w", file, err)
	}
	return &Keys{byID: byID}, nil
}

// Verify is nil for a body signed by the key called id; else
// ErrSignature or ErrUnavailable. The signature is base64 of ASN.1.
func (k *Keys) Verify(ctx context.Context, id, signature string, body []byte) error {
	key, err := k.key(ctx, id)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	asn1, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !ecdsa.VerifyASN1(key, sum[:], asn1) {
		return ErrSignature
	}
	return nil
}

// key returns the key called id, and fetches the keys for an
// unknown one. Made-up ids cause one fetch each fetchPause,
// of a public address, for at most fetchTimeout.
func (k *Keys) key(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.url == "" {
		return known(k.byID[id])
	}
	now := k.clock()
	if k.byID[id] != nil && now.Sub(k.fetched) < refreshAfter {
		return k.byID[id], nil
	}
	var failed error
	if k.tried.IsZero() || now.Sub(k.tried) >= fetchPause {
		k.tried = now
		if byID, err := fetch(ctx, k.url); err != nil {
			failed = err
			httpapi.Logger(ctx).Warn("cannot fetch the keys that leak reports are signed with", slog.String("error", err.Error()))
		} else {
			k.byID, k.fetched = byID, now
		}
	}
	if k.byID == nil || now.Sub(k.fetched) >= maxStale {
		return nil, errors.Join(ErrUnavailable, failed)
	}
	return known(k.byID[id])
}

func known(key *ecdsa.PublicKey) (*ecdsa.PublicKey, error) {
	if key == nil {
		return nil, ErrSignature
	}
	return key, nil
}

func fetch(ctx context.Context, url string) (map[string]*ecdsa.PublicKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s is answered with %s", url, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxKeysFile))
	if err != nil {
		return nil, err
	}
	return parseKeys(text)
}

func parseKeys(text []byte) (map[string]*ecdsa.PublicKey, error) {
	var published struct {
		Keys []struct {
			ID  string `json:"key_identifier"`
			Key string `json:"key"`
		} `json:"public_keys"`
	}
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	byID := map[string]*ecdsa.PublicKey{}
	for _, entry := range published.Keys {
		key, err := parseKey(entry.Key)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", entry.ID, err)
		}
		byID[entry.ID] = key
	}
	if len(byID) == 0 {
		return nil, errors.New(`there are none: want {"public_keys": [{"key_identifier", "key"}]}`)
	}
	return byID, nil
}

func parseKey(text string) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is no PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is no ECDSA key on P-256")
	}
	return key, nil
}

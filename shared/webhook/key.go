package webhook

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// secretPrefix is how secrets begin by the convention.
const secretPrefix = "whsec_"

// keyBytes is how long a key is, and each secret that follows from one.
const keyBytes = 32

// Keys are what the secrets of endpoints follow from, so that no
// secret is kept. The first makes new ones, the others those of
// endpoints that were made while they were first.
type Keys struct{ all []masterKey }

type masterKey struct {
	id  string // identifies the key and reveals nothing of it
	raw []byte
}

// ErrUnknownKey means that the key of a secret is configured no more.
var ErrUnknownKey = errors.New("the key that the secret follows from is not configured")

// ParseKeys reads keys of 64 hexadecimal characters each, with commas
// between them; none from an empty text.
func ParseKeys(text httpapi.Secret) (Keys, error) {
	var keys Keys
	for field := range strings.FieldsFuncSeq(text.Reveal(), func(r rune) bool { return strings.ContainsRune(", \n\r\t", r) }) {
		raw, err := hex.DecodeString(field)
		if err != nil || len(raw) != keyBytes {
			return Keys{}, fmt.Errorf("key %d of webhooks is not of %d hexadecimal characters", len(keys.all)+1, 2*keyBytes)
		}
		sum := sha256.Sum256(append([]byte("weir webhook key id "), raw...))
		keys.all = append(keys.all, masterKey{hex.EncodeToString(sum[:4]), raw})
	}
	return keys, nil
}

// Current is the id of the key that new secrets follow from; ""
// where there is none.
func (k Keys) Current() string {
	if len(k.all) == 0 {
		return ""
	}
	return k.all[0].id
}

// A SecretName identifies a secret.
type SecretName struct {
	Key        string // id
	Endpoint   string
	Generation int // grows with each rotation
}

// Secret is what an endpoint checks signatures with.
func (k Keys) Secret(of SecretName) (httpapi.Secret, error) {
	for _, key := range k.all {
		if key.id != of.Key {
			continue
		}
		raw, err := hkdf.Key(sha256.New, key.raw, nil, fmt.Sprintf("weir webhook secret %s %d", of.Endpoint, of.Generation), keyBytes)
		return httpapi.Secret(secretPrefix + base64.StdEncoding.EncodeToString(raw)), err
	}
	return "", fmt.Errorf("key %q: %w", of.Key, ErrUnknownKey)
}

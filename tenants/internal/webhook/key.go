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

// secretPrefix begins secrets by the convention.
const secretPrefix = "whsec_"

// keyBytes is the length of a key, and of each secret derived from one.
const keyBytes = 32

// Keys derive the secrets of endpoints, so that no secret is stored.
// The first derives new ones, the others those of endpoints created
// while they were first.
type Keys struct{ all []masterKey }

type masterKey struct {
	id  string // identifies the key without revealing it
	raw []byte
}

// ErrUnknownKey means that the key of a secret is no longer configured.
var ErrUnknownKey = errors.New("the key that the secret follows from is not configured")

// ParseKeys reads keys of 64 hexadecimal characters each, separated by
// commas; none from an empty text.
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

// Current returns the id of the key for new secrets; "" without one.
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

// Secret returns the secret that an endpoint checks signatures with.
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

package webhook

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weirlog/weir/shared/httpapi"
)

// A Payload is the body of a message.
type Payload struct {
	Type      string          `json:"type"`      // "quota.exhausted"
	Timestamp time.Time       `json:"timestamp"` // when it happened
	Data      json.RawMessage `json:"data"`
}

// A Message is one POST. Its id is the same for every attempt, so that
// a receiver recognizes repetitions.
type Message struct {
	ID   string
	URL  string
	Body []byte
	At   time.Time        // of this attempt; receivers refuse messages minutes old
	With []httpapi.Secret // each signs, the newest first
}

// header returns the headers of the message.
func (m Message) header() (http.Header, error) {
	signatures := make([]string, 0, len(m.With))
	for _, secret := range m.With {
		signer, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			return nil, fmt.Errorf("cannot sign message %q: %w", m.ID, err)
		}
		signature, err := signer.Sign(m.ID, m.At, m.Body)
		if err != nil {
			return nil, fmt.Errorf("cannot sign message %q: %w", m.ID, err)
		}
		signatures = append(signatures, signature)
	}
	return http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"Weir-Webhooks/1"},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookID):        {m.ID},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookTimestamp): {strconv.FormatInt(m.At.Unix(), 10)},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature): {strings.Join(signatures, " ")},
	}, nil
}

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

// privateNames end in a label that no public name ends in (RFC 6761, 6762,
// 8375, and ICANN's resolution on .internal).
var privateNames = []string{".localhost", ".local", ".internal", ".home.arpa"}

// mayLead reports whether a name may lead to a reachable address. Names of
// this network, such as localhost, may if one of our own is configured.
func (r reach) mayLead(name string) bool {
	return isName(name) && (len(r.networks) > 0 || isPublic(name))
}

// isName reports whether a host is a name and no address in disguise:
// resolvers take 2130706433, 0x7f.1, 127.1 and 0177.0.0.1 for 127.0.0.1.
// As in URLs of browsers, a last label that is a number makes an address.
func isName(host string) bool {
	labels := strings.Split(host, ".")
	if slices.Contains(labels, "") { // such as a dot at the end
		return false
	}
	return !isNumber(labels[len(labels)-1])
}

// isNumber reports whether a label is a decimal, octal or
// hexadecimal number.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(strings.ToLower(label), "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// isPublic reports whether others than this network may know a name.
func isPublic(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, ".") && !slices.ContainsFunc(privateNames, func(end string) bool { return strings.HasSuffix(name, end) })
}

// pauses follow each failed attempt: 71 hours and 36 minutes in all.
var pauses = []time.Duration{
	5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour, 22 * time.Hour,
}

// Attempts limits how often a message is sent.
const Attempts = 11

// RetryDelay returns the wait after so many failed attempts; false: no
// more. chance is from 0 to 1: the pause is up to a tenth shorter, so
// that messages that failed together do not return together.
func RetryDelay(failed int, chance float64) (time.Duration, bool) {
	if failed < 1 || failed > len(pauses) {
		return 0, false
	}
	pause := pauses[failed-1]
	return pause - time.Duration(chance*float64(pause)/10), true
}

package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
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

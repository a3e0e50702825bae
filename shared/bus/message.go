package bus

import (
	"slices"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
)

const (
	// KeyMetadata is the entry of a message's metadata that becomes the record's key instead of a header.
	KeyMetadata = "weir_key"

	// headerID carries a message's UUID, as the CloudEvents Kafka binding names it.
	headerID = "ce_id"
)

// outgoing is a message as the encoder wants it: headers sorted, key apart. It holds strings, as the message does, so that
// nothing is copied before the bytes go into a batch.
type outgoing struct {
	key     string
	keyed   bool // an empty key is not the same as none
	value   []byte
	headers []pair
}

type pair struct{ name, value string }

// newOutgoing maps a message to a record: metadata to headers by name, UUID to ce_id unless metadata has one, payload to value.
// headers is scratch space that the result uses.
func newOutgoing(m *message.Message, headers []pair) outgoing {
	out := outgoing{value: m.Payload, headers: headers[:0]}
	for name, value := range m.Metadata {
		if name == KeyMetadata {
			out.key, out.keyed = value, true
			continue
		}
		out.headers = append(out.headers, pair{name, value})
	}
	if _, named := m.Metadata[headerID]; !named && m.UUID != "" {
		out.headers = append(out.headers, pair{headerID, m.UUID})
	}
	slices.SortFunc(out.headers, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return out
}

// NewMessage maps a record to a Watermill message, the inverse of what Publisher does. Of repeated headers the last one stays.
// Bytes are shared with the record. Where the record came from is not in the metadata: see Origin.
func NewMessage(r Record) *message.Message {
	m := message.NewMessage(r.Header(headerID), r.Value)
	for _, h := range r.Headers {
		m.Metadata[h.Key] = string(h.Value)
	}
	if r.Key != nil {
		m.Metadata[KeyMetadata] = string(r.Key)
	}
	return m
}

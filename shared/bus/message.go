package bus

import "github.com/ThreeDotsLabs/watermill/message"

const (
	// KeyMetadata is the entry of a message's metadata that becomes the
	// record's key, not a header.
	KeyMetadata = "weir_key"

	// HeaderID carries a message's UUID, as the CloudEvents Kafka binding names it.
	HeaderID = "ce_id"
)

// NewMessage maps a record to a Watermill message, the inverse of Publisher.
// The last of repeated headers wins. Bytes are shared with the record.
func NewMessage(r Record) *message.Message {
	m := message.NewMessage(r.Header(HeaderID), r.Value)
	for _, h := range r.Headers {
		m.Metadata[h.Key] = string(h.Value)
	}
	if r.Key != nil {
		m.Metadata[KeyMetadata] = string(r.Key)
	}
	return m
}

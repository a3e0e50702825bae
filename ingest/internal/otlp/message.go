package otlp

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("it is malformed")

// A Message reads the fields of a message in protobuf, one after the other.
// What it reads shares the message's memory.
type Message struct {
	Number protowire.Number // of the field
	Value  uint64           // of a field that is a number, else 0
	Bytes  []byte           // of a field that is a text, bytes or a message, else nil
	rest   []byte
	err    error
}

// Read begins to read a message.
func Read(message []byte) Message { return Message{rest: message} }

// Next reads the next field and reports whether there is one. After the last,
// or one that can't be read, see Err.
func (m *Message) Next() bool {
	rest := m.rest
	if len(rest) < 2 {
		return m.unusual()
	}
	// Most fields have a tag and a length of one byte each.
	tag, size := rest[0], int(rest[1])
	if tag&7 != byte(protowire.BytesType) || tag < 8 || tag >= 0x80 || size >= 0x80 || len(rest)-2 < size {
		return m.unusual()
	}
	m.Number, m.Value, m.Bytes, m.rest = protowire.Number(tag>>3), 0, rest[2:2+size], rest[2+size:]
	return true
}

// unusual reads a field of any kind and size.
func (m *Message) unusual() bool {
	if len(m.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(m.rest)
	if n < 0 {
		return m.malformed()
	}
	m.Number, m.Value, m.Bytes, m.rest = number, 0, nil, m.rest[n:]
	switch kind {
	case protowire.VarintType:
		m.Value, n = protowire.ConsumeVarint(m.rest)
	case protowire.Fixed64Type:
		m.Value, n = protowire.ConsumeFixed64(m.rest)
	case protowire.BytesType:
		m.Bytes, n = protowire.ConsumeBytes(m.rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, m.rest)
	}
	if n < 0 {
		return m.malformed()
	}
	m.rest = m.rest[n:]
	return true
}

func (m *Message) malformed() bool {
	m.rest, m.err = nil, errMalformed
	return false
}

// Err is why a message can't be read.
func (m *Message) Err() error { return m.err }

// Repeated calls each with the content of a message's fields of one number.
func Repeated(message []byte, number protowire.Number, each func(text []byte) error) error {
	m := Read(message)
	for m.Next() {
		if m.Number != number {
			continue
		}
		if err := each(m.Bytes); err != nil {
			return err
		}
	}
	return m.Err()
}

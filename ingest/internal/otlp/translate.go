package otlp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Translation is what is known of a request after it was translated.
type Translation struct {
	Records int
	// Identity is a hash of the request, by which a repetition is known.
	// Empty unless each record has an attribute log.record.uid: others may
	// be equal and yet tell of two events.
	Identity []byte
}

// A Translator translates requests, one at a time, and reuses its memory.
type Translator struct {
	to        io.Writer
	failed    error // of to
	out       []byte
	untrusted bool
	received  time.Time
	resource  attributes
	scope     scope
	record    record
	records   int
	unique    int // records with a uid
}

// An Invalid is a request that is not OTLP.
type Invalid struct{ Detail string }

func (e *Invalid) Error() string { return e.Detail }

var errMalformed = errors.New("it is malformed")

// Translate writes the body of POST /v1/logs for a request in protobuf that
// was received at a time. Entries of an untrusted client get
// ingest.MarkUntrusted in their metadata. The error is an *Invalid, else that of the writer.
func (t *Translator) Translate(request []byte, untrusted bool, received time.Time, to io.Writer) (Translation, error) {
	t.to, t.failed, t.out, t.untrusted, t.received, t.records, t.unique = to, nil, t.out[:0], untrusted, received, 0, 0
	t.write(`{"logs":[`)
	err := Repeated(request, 1, t.resourceLogs)
	if t.failed != nil {
		return Translation{}, t.failed
	}
	if err != nil {
		return Translation{}, &Invalid{fmt.Sprintf("Log record %d can't be read: %v.", t.records, err)}
	}
	t.write(`]}`)
	t.flush()
	done := Translation{Records: t.records}
	if t.records > 0 && t.unique == t.records {
		sum := sha256.Sum256(request)
		done.Identity = sum[:]
	}
	return done, t.failed
}

// resourceLogs reads ResourceLogs, whose resource may stand anywhere.
func (t *Translator) resourceLogs(text []byte) error {
	t.resource = t.resource[:0]
	if err := Repeated(text, 1, func(resource []byte) error { return t.resource.add(resource, 1) }); err != nil {
		return err
	}
	return Repeated(text, 2, t.scopeLogs)
}

// A scope is an InstrumentationScope.
type scope struct {
	name, version []byte
	attributes    attributes
}

func (t *Translator) scopeLogs(text []byte) error {
	t.scope = scope{attributes: t.scope.attributes[:0]}
	if err := Repeated(text, 1, t.scope.read); err != nil {
		return err
	}
	return Repeated(text, 2, func(record []byte) error {
		if err := t.record.read(record); err != nil {
			return err
		}
		return t.entry()
	})
}

func (s *scope) read(text []byte) error {
	err := Fields(text, func(f Field) error {
		switch f.Number {
		case 1:
			s.name = f.Bytes
		case 2:
			s.version = f.Bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.attributes.add(text, 3)
}

// A record is a LogRecord. It shares the request's memory.
type record struct {
	time, observed  uint64 // nanoseconds since 1970; 0: none
	severity        uint64
	severityText    []byte
	body            []byte // AnyValue; nil: none
	attributes      attributes
	traceID, spanID []byte
	event           []byte
}

func (r *record) read(text []byte) error {
	*r = record{attributes: r.attributes[:0]}
	err := Fields(text, func(f Field) error {
		switch f.Number {
		case 1:
			r.time = f.Value
		case 2:
			r.severity = f.Value
		case 3:
			r.severityText = f.Bytes
		case 5:
			if len(f.Bytes) > 0 { // a Collector writes an empty one where there was none
				r.body = f.Bytes
			}
		case 9:
			r.traceID = f.Bytes
		case 10:
			r.spanID = f.Bytes
		case 11:
			r.observed = f.Value
		case 12:
			r.event = f.Bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.attributes.add(text, 6)
}

// An attribute is a KeyValue.
type attribute struct{ name, value []byte }

type attributes []attribute

// maxAttributes is how many a record, a resource or a scope may have: an
// empty one takes 2 bytes of a request and 48 of memory, and those of a
// record are compared with those of its resource.
const maxAttributes = 1000

var errAttributes = errors.New("it, its resource or its scope has more than " + strconv.Itoa(maxAttributes) + " attributes")

// add adds the attributes that are the field with a number of a message.
func (a *attributes) add(message []byte, number protowire.Number) error {
	return Repeated(message, number, func(text []byte) error {
		if len(*a) == maxAttributes {
			return errAttributes
		}
		one, err := readAttribute(text)
		*a = append(*a, one)
		return err
	})
}

func readAttribute(text []byte) (a attribute, err error) {
	err = Fields(text, func(f Field) error {
		switch f.Number {
		case 1:
			a.name = f.Bytes
		case 2:
			a.value = f.Bytes
		}
		return nil
	})
	return a, err
}

func (a attributes) has(name string) bool { return a.find(name) != nil }

func (a attributes) find(name string) *attribute {
	for i := range a {
		if string(a[i].name) == name {
			return &a[i]
		}
	}
	return nil
}

// text returns the attribute with a name if it is a text that is not empty.
func (a attributes) text(name string) []byte {
	found := a.find(name)
	if found == nil {
		return nil
	}
	text, _ := textOf(found.value)
	return text
}

// A Field is one of a message.
type Field struct {
	Number protowire.Number
	Value  uint64 // of a number
	Bytes  []byte // of a text, bytes or a message
}

// Fields calls each with the fields of a message.
func Fields(message []byte, each func(Field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		f := Field{Number: number}
		switch kind {
		case protowire.VarintType:
			f.Value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.Value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// Repeated calls each with the content of a message's fields of one number.
func Repeated(message []byte, number protowire.Number, each func(text []byte) error) error {
	return Fields(message, func(f Field) error {
		if f.Number != number {
			return nil
		}
		return each(f.Bytes)
	})
}

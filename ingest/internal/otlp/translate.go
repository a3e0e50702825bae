package otlp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
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
	resource  resource
	scope     scope
	record    record
	records   int
	unique    int // records with a uid
}

// An Invalid is a request that is not OTLP.
type Invalid struct{ Detail string }

func (e *Invalid) Error() string { return e.Detail }

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
	size := 0
	t.resource = resource{attributes: t.resource.attributes[:0], members: t.resource.members[:0]}
	err := Repeated(text, 1, func(message []byte) error {
		size += len(message)
		return Repeated(message, 1, t.resource.attributes.add)
	})
	if err != nil {
		return err
	}
	t.resource.environment = t.resource.attributes.environment()
	if size > 0 && size <= maxKeptResource {
		if err := t.keepMembers(); err != nil {
			return err
		}
	}
	return Repeated(text, 2, t.scopeLogs)
}

// A resource is a Resource.
type resource struct {
	attributes  attributes
	environment []byte // nil: it names none
	members     []byte // the attributes as members of an object, as each record has them; empty: they are not kept
}

// maxKeptResource is how large a resource may be whose members are kept: a byte becomes at most six.
const maxKeptResource = flushed / 8

// keepMembers translates the attributes of the resource once for all its records.
func (t *Translator) keepMembers() error {
	t.flush()
	members := object{t: t}
	for _, a := range t.resource.attributes {
		if t.claimsMark(a) {
			continue
		}
		if err := members.attribute(a); err != nil {
			return err
		}
	}
	if members.begun {
		t.resource.members = append(t.resource.members, t.out[len("{"):]...)
	}
	t.out = t.out[:0]
	return nil
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
	m := Read(text)
	for m.Next() {
		switch m.Number {
		case 1:
			s.name = m.Bytes
		case 2:
			s.version = m.Bytes
		case 3:
			if err := s.attributes.add(m.Bytes); err != nil {
				return err
			}
		}
	}
	return m.Err()
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
	m := Read(text)
	for m.Next() {
		switch m.Number {
		case 1:
			r.time = m.Value
		case 2:
			r.severity = m.Value
		case 3:
			r.severityText = m.Bytes
		case 5:
			if len(m.Bytes) > 0 { // a Collector writes an empty one where there was none
				r.body = m.Bytes
			}
		case 6:
			if err := r.attributes.add(m.Bytes); err != nil {
				return err
			}
		case 9:
			r.traceID = m.Bytes
		case 10:
			r.spanID = m.Bytes
		case 11:
			r.observed = m.Value
		case 12:
			r.event = m.Bytes
		}
	}
	return m.Err()
}

// An attribute is a KeyValue.
type attribute struct{ name, value []byte }

type attributes []attribute

// maxAttributes is how many a record, a resource or a scope may have: an
// empty one takes 2 bytes of a request and 48 of memory, and those of a
// record are compared with those of its resource.
const maxAttributes = 1000

var errAttributes = errors.New("it, its resource or its scope has more than " + strconv.Itoa(maxAttributes) + " attributes")

// add adds a KeyValue.
func (a *attributes) add(text []byte) error {
	if len(*a) == maxAttributes {
		return errAttributes
	}
	one, err := readAttribute(text)
	*a = append(*a, one)
	return err
}

func readAttribute(text []byte) (a attribute, err error) {
	m := Read(text)
	for m.Next() {
		switch m.Number {
		case 1:
			a.name = m.Bytes
		case 2:
			a.value = m.Bytes
		}
	}
	return a, m.Err()
}

// shares reports whether two have a name in common.
func (a attributes) shares(other attributes) bool {
	for i := range other {
		if a.has(string(other[i].name)) {
			return true
		}
	}
	return false
}

func (a attributes) environment() []byte {
	for _, name := range [...]string{"deployment.environment.name", "deployment.environment"} {
		if text := a.text(name); text != nil {
			return text
		}
	}
	return nil
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

package otlp

import (
	"bytes"
	"encoding/hex"
	"time"

	"github.com/weirlog/weir/ingest"
)

// entry writes the entry of the record.
func (t *Translator) entry() error {
	if t.records++; t.records > 1 {
		t.write(",")
	}
	if t.record.attributes.text("log.record.uid") != nil {
		t.unique++
	}
	t.timestamp()
	t.write(`","level":"`)
	t.write(t.record.level().String())
	t.write(`","message":`)
	if err := t.message(); err != nil {
		return err
	}
	if t.resource.environment != nil {
		t.write(`,"environment":`)
		t.text(t.resource.environment)
	}
	t.failure()
	if err := t.metadata(); err != nil {
		return err
	}
	t.write("}")
	return t.failed // no record after it is read: each repeats its resource, so a few bytes would be the work of many
}

func (t *Translator) timestamp() {
	at := t.received
	switch {
	case t.record.time > 0:
		at = unixNano(t.record.time)
	case t.record.observed > 0:
		at = unixNano(t.record.observed)
	}
	t.write(`{"timestamp":"`)
	t.out = ingest.InstantOf(at).AppendText(t.out)
}

// unixNano is time.Unix of an unsigned number, which reaches into 2554.
func unixNano(nanos uint64) time.Time {
	return time.Unix(int64(nanos/1e9), int64(nanos%1e9)) //nolint:gosec // both fit
}

// level is by the ranges of four of the specification's data model.
func (r *record) level() ingest.Severity {
	switch {
	case r.severity == 0 || r.severity > 24:
		if level, known := ingest.LevelNamed(r.severityText); known {
			return level
		}
		return ingest.SeverityInfo
	case r.severity <= 8: // trace and debug
		return ingest.SeverityDebug
	}
	return ingest.SeverityDebug + ingest.Severity((r.severity-5)/4)
}

func (t *Translator) message() error {
	if text, ok := textOf(t.record.body); ok {
		t.text(text)
		return nil
	}
	if t.record.body == nil {
		t.text(t.record.event)
		return nil
	}
	if said := messageIn(t.record.body); said != nil {
		t.text(said)
		return nil
	}
	quoted := &Translator{to: inText{t}}
	t.write(`"`)
	err := quoted.value(t.record.body, 1)
	quoted.flush()
	t.write(`"`)
	return err
}

// messageIn is the message of a body that is a map; nil: it has none.
func messageIn(body []byte) []byte {
	var of attributes
	_ = Repeated(body, kvlistValue, func(list []byte) error { return Repeated(list, 1, of.add) })
	if text := of.text("message"); text != nil {
		return text
	}
	return of.text("msg")
}

// Attributes of a record that describe an exception, by the semantic conventions.
const (
	exceptionType    = "exception.type"
	exceptionMessage = "exception.message"
	exceptionStack   = "exception.stacktrace"
)

// failure writes the error of a record with an exception.
func (t *Translator) failure() {
	of := t.record.attributes
	class, said, stack := of.text(exceptionType), of.text(exceptionMessage), of.text(exceptionStack)
	if class == nil && said == nil && stack == nil {
		return
	}
	t.write(`,"error":`)
	open := "{"
	for _, member := range [...]struct {
		name string
		text []byte
	}{{`"type":`, class}, {`"message":`, said}} {
		if member.text != nil {
			t.write(open)
			t.write(member.name)
			t.text(member.text)
			open = ","
		}
	}
	if stack != nil {
		t.write(open)
		t.stack(stack)
	}
	t.write("}")
}

func (t *Translator) stack(text []byte) {
	t.write(`"stack_trace":`)
	open := "["
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			t.write(open)
			t.text(line)
			open = ","
		}
	}
	if open == "[" {
		t.write(open)
	}
	t.write("]")
}

// metadata writes all that is not elsewhere.
func (t *Translator) metadata() error {
	t.write(`,"metadata":`)
	m := object{t: t}
	if t.untrusted {
		m.name(ingest.MarkUntrusted)
		t.write("true")
	}
	own := t.record.attributes
	for i := range own {
		if isException(own[i]) || t.claimsMark(own[i]) {
			continue
		}
		if err := m.attribute(own[i]); err != nil {
			return err
		}
	}
	twice := own.shares(t.resource.attributes)
	if err := t.resourceMembers(&m, twice); err != nil {
		return err
	}
	t.context(&m)
	if err := t.structured(&m, twice); err != nil {
		return err
	}
	m.end()
	return nil
}

// resourceMembers writes the attributes of the resource, without those that the record has as well.
func (t *Translator) resourceMembers(m *object, twice bool) error {
	if !twice && len(t.resource.members) > 0 {
		m.begin()
		t.plain(t.resource.members)
		return nil
	}
	for _, a := range t.resource.attributes {
		if twice && t.record.attributes.has(string(a.name)) || t.claimsMark(a) {
			continue
		}
		if err := m.attribute(a); err != nil {
			return err
		}
	}
	return nil
}

// claimsMark reports whether an untrusted client wrote its own mark.
func (t *Translator) claimsMark(a attribute) bool {
	return t.untrusted && string(a.name) == ingest.MarkUntrusted
}

// isException reports whether an attribute is shown as the entry's error.
func isException(a attribute) bool {
	switch string(a.name) {
	case exceptionType, exceptionMessage, exceptionStack:
		text, _ := textOf(a.value)
		return text != nil
	}
	return false
}

// named reports whether an attribute has the name of a member, which it then is.
func (t *Translator) named(name string) bool {
	return t.record.attributes.has(name) || t.resource.attributes.has(name)
}

// context writes where a record comes from.
func (t *Translator) context(m *object) {
	for _, id := range [...]struct {
		name  string
		bytes []byte
	}{{"trace_id", t.record.traceID}, {"span_id", t.record.spanID}} {
		if len(bytes.Trim(id.bytes, "\x00")) > 0 && !t.named(id.name) {
			m.name(id.name)
			t.write(`"`)
			t.out = hex.AppendEncode(t.out, id.bytes)
			t.write(`"`)
		}
	}
	if len(t.record.event) > 0 && t.record.body != nil && !t.named("event_name") {
		m.name("event_name")
		t.text(t.record.event)
	}
	level, known := ingest.LevelNamed(t.record.severityText)
	if len(t.record.severityText) > 0 && (!known || level != t.record.level()) && !t.named("severity_text") {
		m.name("severity_text")
		t.text(t.record.severityText)
	}
}

// structured writes what is an object: a body, the scope, and attributes of
// the resource that the record has as well.
func (t *Translator) structured(m *object, twice bool) error {
	if _, isText := textOf(t.record.body); t.record.body != nil && !isText && !t.named("body") {
		m.name("body")
		if err := t.value(t.record.body, 1); err != nil {
			return err
		}
	}
	if len(t.scope.name)+len(t.scope.version)+len(t.scope.attributes) > 0 && !t.named("scope") {
		m.name("scope")
		if err := t.scopeObject(); err != nil {
			return err
		}
	}
	if !twice || t.named("resource") {
		return nil
	}
	m.name("resource")
	resource := object{t: t}
	for _, a := range t.resource.attributes {
		if t.record.attributes.has(string(a.name)) {
			if err := resource.attribute(a); err != nil {
				return err
			}
		}
	}
	resource.end()
	return nil
}

func (t *Translator) scopeObject() error {
	scope := object{t: t}
	if len(t.scope.name) > 0 && !t.scope.attributes.has("name") {
		scope.name("name")
		t.text(t.scope.name)
	}
	if len(t.scope.version) > 0 && !t.scope.attributes.has("version") {
		scope.name("version")
		t.text(t.scope.version)
	}
	for _, a := range t.scope.attributes {
		if err := scope.attribute(a); err != nil {
			return err
		}
	}
	scope.end()
	return nil
}

package shippers

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirlog/weir/ingest"
)

// maxAttributes is how many fields, labels or members of metadata a record
// may have: those of OTLP have at most 1,000 attributes, some of which come
// from elsewhere.
const maxAttributes = 950

// WorkingMemory is how much rewriting a request of so many bytes takes at
// most, decompression included: a number of 4 bytes is 11 in protobuf, and
// is copied as part of its array, attribute, record and resource.
func WorkingMemory(bytes int64) int64 { return 16 * bytes }

// A request is an ExportLogsServiceRequest that is being written.
type request struct {
	out      []byte
	resource []byte // of the records, a Resource
	records  []byte // ScopeLogs
	record   []byte // LogRecord

	most       int // records
	written    int
	attributes int // of the record and its resource
}

// Fields of the messages of opentelemetry.proto.logs.v1.
const (
	resourceLogsField protowire.Number = 1
	resourceField     protowire.Number = 1 // of ResourceLogs
	scopeLogsField    protowire.Number = 2
	resourceAttribute protowire.Number = 1 // of Resource
	recordField       protowire.Number = 2 // of ScopeLogs
	timeField         protowire.Number = 1 // of LogRecord
	severityText      protowire.Number = 3
	bodyField         protowire.Number = 5
	recordAttribute   protowire.Number = 6
)

// The kinds of an AnyValue, which are its fields.
const (
	stringValue protowire.Number = 1 + iota
	boolValue
	intValue
	doubleValue
	arrayValue
	mapValue
)

// environment is the attribute of a resource that an entry's environment is.
const environment = "deployment.environment.name"

func appendMessage(to []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), content)
}

func stringOf(text []byte) []byte { return appendMessage(nil, stringValue, text) }

// appendAttribute appends a KeyValue, whose value is an AnyValue.
func appendAttribute(to []byte, field protowire.Number, name string, value []byte) []byte {
	pair := appendMessage(make([]byte, 0, len(name)+len(value)+8), 1, []byte(name))
	return appendMessage(to, field, appendMessage(pair, 2, value))
}

func (r *request) attribute(name string, value []byte) error {
	r.record = appendAttribute(r.record, recordAttribute, name, value)
	return r.count()
}

func (r *request) label(name string, value []byte) error {
	r.resource = appendAttribute(r.resource, resourceAttribute, name, value)
	return r.count()
}

// count counts an attribute of the record or its resource.
func (r *request) count() error {
	if r.attributes++; r.attributes > maxAttributes {
		return fmt.Errorf("it has more than %d fields or labels", maxAttributes)
	}
	return nil
}

// The seconds that OTLP can say: from 1970 on, 64 bits of nanoseconds.
const endSeconds = 1 << 64 / 1_000_000_000

// time writes a record's time, unless OTLP can't say it.
func (r *request) time(at ingest.Instant) bool {
	if at.Seconds < 0 || at.Seconds >= endSeconds || at == (ingest.Instant{}) {
		return false
	}
	nanos := uint64(at.Seconds)*1e9 + uint64(at.Nanos) //nolint:gosec // neither is negative
	r.record = protowire.AppendFixed64(protowire.AppendTag(r.record, timeField, protowire.Fixed64Type), nanos)
	return true
}

// endRecord ends a record, and endResource those of a resource.
func (r *request) endRecord() error {
	if r.written++; r.written > r.most {
		return fmt.Errorf("it has more than %d records", r.most)
	}
	r.records = appendMessage(r.records, recordField, r.record)
	r.record = r.record[:0]
	return nil
}

func (r *request) endResource() {
	if len(r.records) > 0 {
		logs := appendMessage(appendMessage(nil, resourceField, r.resource), scopeLogsField, r.records)
		r.out = appendMessage(r.out, resourceLogsField, logs)
	}
	r.resource, r.records, r.attributes = r.resource[:0], r.records[:0], 0
}

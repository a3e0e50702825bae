package shippers

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirlog/weir/ingest"
)

// A request is an ExportLogsServiceRequest that is being written.
type request struct {
	out      []byte
	resource []byte // of the records, a Resource
	records  []byte // ScopeLogs
	record   []byte // LogRecord
}

// environment is the attribute of a resource that an entry's environment is.
const environment = "deployment.environment.name"

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

func appendMessage(to []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), content)
}

func stringOf(text []byte) []byte { return appendMessage(nil, stringValue, text) }

// appendAttribute appends a KeyValue, whose value is an AnyValue.
func appendAttribute(to []byte, field protowire.Number, name string, value []byte) []byte {
	pair := appendMessage(make([]byte, 0, len(name)+len(value)+8), 1, []byte(name))
	return appendMessage(to, field, appendMessage(pair, 2, value))
}

func (r *request) appendTime(at ingest.Instant) {
	nanos := uint64(at.Seconds)*1e9 + uint64(at.Nanos) //nolint:gosec // those before 1970 are left out
	if at.Seconds >= 0 {
		r.record = protowire.AppendFixed64(protowire.AppendTag(r.record, timeField, protowire.Fixed64Type), nanos)
	}
}

// endRecord ends a record, and endResource those of a resource.
func (r *request) endRecord() {
	r.records = appendMessage(r.records, recordField, r.record)
	r.record = r.record[:0]
}

func (r *request) endResource() {
	if len(r.records) > 0 {
		logs := appendMessage(appendMessage(nil, resourceField, r.resource), scopeLogsField, r.records)
		r.out = appendMessage(r.out, resourceLogsField, logs)
	}
	r.resource, r.records = r.resource[:0], r.records[:0]
}

var errProtobuf = errors.New("it is no protobuf")

// fieldsOf calls each with the fields of a message: the content of texts and
// messages, the value of numbers.
func fieldsOf(message []byte, each func(field protowire.Number, text []byte, value uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		var text []byte
		var value uint64
		switch kind {
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		if err := each(field, text, value); err != nil {
			return err
		}
	}
	return nil
}

// messages calls each with the content of a message's fields of one number.
func messages(message []byte, number protowire.Number, each func(text []byte) error) error {
	return fieldsOf(message, func(field protowire.Number, text []byte, _ uint64) error {
		if field != number {
			return nil
		}
		return each(text)
	})
}

// WorkingMemory is how much rewriting a request of so many bytes holds
// beside it: what is written, at three depths.
func WorkingMemory(bytes int64) int64 { return 4 * bytes }

package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// An Encoding is the media type of a request and its answer.
type Encoding string

// The encodings of OTLP/HTTP.
const (
	Protobuf Encoding = "application/x-protobuf"
	JSON     Encoding = "application/json"
)

// What ToProtobuf holds beside a request: its texts and numbers, and a
// message for each brace, which may be empty.
const (
	perByte    = 8
	perMessage = 256
)

// WorkingMemory is how much ToProtobuf holds beside a request in JSON.
func WorkingMemory(request []byte) int64 {
	return max(perByte*int64(len(request)), perMessage*int64(bytes.Count(request, []byte("{"))))
}

// ToProtobuf encodes a request in JSON as one in protobuf. The error is an *Invalid.
func ToProtobuf(request []byte) ([]byte, error) {
	data := new(logs.LogsData) // the same as ExportLogsServiceRequest, which brings gRPC along
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(request, data); err != nil {
		return nil, &Invalid{fmt.Sprintf("The body can't be read as OTLP in JSON: %.300v.", err)}
	}
	for _, resource := range data.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				record.TraceId, record.SpanId = fromHex(record.GetTraceId()), fromHex(record.GetSpanId())
			}
		}
	}
	text, err := proto.Marshal(data)
	if err != nil {
		return nil, &Invalid{fmt.Sprintf("The body can't be read as OTLP in JSON: %v.", err)}
	}
	return text, nil
}

// fromHex undoes that an id was decoded as base64: OTLP has hexadecimal
// digits. What is no id becomes none.
func fromHex(decoded []byte) []byte {
	id, err := hex.DecodeString(base64.StdEncoding.EncodeToString(decoded))
	if err != nil {
		return nil
	}
	return id
}

// Answer is the answer to a request of which so many records were rejected
// for a reason: an ExportLogsServiceResponse.
func (e Encoding) Answer(rejected int, reason string) []byte {
	switch {
	case e == JSON && rejected == 0:
		return []byte("{}")
	case e == JSON:
		return fmt.Appendf(nil, `{"partialSuccess":{"rejectedLogRecords":"%d","errorMessage":%s}}`, rejected, quote(reason))
	case rejected == 0:
		return nil
	}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(rejected)) //nolint:gosec // not negative
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), reason)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// Status is the answer to a request that failed: a google.rpc.Status.
func (e Encoding) Status(message string) []byte {
	if e == JSON {
		return fmt.Appendf(nil, `{"message":%s}`, quote(message))
	}
	return protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), message)
}

func quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("BUG: cannot encode a text: " + err.Error())
	}
	return quoted
}

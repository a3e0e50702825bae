package front

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirlog/weir/shared/measure/entries"
)

// bodies is how many different ones of a kind are sent, in turn.
const bodies = 64

// newBodies makes bodies of POST /v1/logs, and the same entries as requests of OTLP.
func newBodies(size int) (ours, otlp [][]byte, err error) {
	from := entries.New(1)
	for range bodies {
		body := from.AppendBody(nil, size, time.Now(), 0)
		request, err := toOTLP(body)
		if err != nil {
			return nil, nil, err
		}
		ours, otlp = append(ours, body), append(otlp, request)
	}
	return ours, otlp, nil
}

// severities are the numbers of OTLP.
var severities = map[string]logs.SeverityNumber{"debug": 5, "info": 9, "warn": 13, "error": 17, "fatal": 21}

// toOTLP makes records of entries as an SDK makes them: exceptions and fields
// are attributes, the environment is the resource's.
func toOTLP(body []byte) ([]byte, error) {
	var batch struct{ Logs []entry }
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, err
	}
	data, of := &logs.LogsData{}, map[string]*logs.ScopeLogs{}
	for _, e := range batch.Logs {
		if of[e.Environment] == nil {
			of[e.Environment] = &logs.ScopeLogs{Scope: &common.InstrumentationScope{Name: "shop"}}
			data.ResourceLogs = append(data.ResourceLogs, &logs.ResourceLogs{
				Resource:  &resources.Resource{Attributes: attributes(map[string]any{"deployment.environment.name": e.Environment})},
				ScopeLogs: []*logs.ScopeLogs{of[e.Environment]},
			})
		}
		of[e.Environment].LogRecords = append(of[e.Environment].LogRecords, e.record())
	}
	return proto.Marshal(data)
}

type entry struct {
	Timestamp                   time.Time
	Level, Message, Environment string
	Metadata                    map[string]any
	Error                       *struct {
		Type, Message string
		StackTrace    []string `json:"stack_trace"`
	}
}

func (e entry) record() *logs.LogRecord {
	of := maps.Clone(e.Metadata)
	if of == nil {
		of = map[string]any{}
	}
	if e.Error != nil {
		of["exception.type"], of["exception.message"] = e.Error.Type, e.Error.Message
		of["exception.stacktrace"] = strings.Join(e.Error.StackTrace, "\n")
	}
	return &logs.LogRecord{
		TimeUnixNano: uint64(e.Timestamp.UnixNano()), SeverityNumber: severities[e.Level], SeverityText: e.Level, //nolint:gosec // after 1970
		Body: text(e.Message), Attributes: attributes(of),
	}
}

func attributes(of map[string]any) (all []*common.KeyValue) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, &common.KeyValue{Key: name, Value: value(of[name])})
	}
	return all
}

func text(of string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: of}}
}

func value(of any) *common.AnyValue {
	switch of := of.(type) {
	case string:
		return text(of)
	case bool:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: of}}
	case float64:
		if of == float64(int64(of)) {
			return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(of)}}
		}
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: of}}
	case map[string]any:
		return &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: attributes(of)}}}
	}
	panic(fmt.Sprintf("BUG: no entry of the generator has a %T", of))
}

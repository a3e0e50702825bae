package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

var receipt = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func attr(name string, value *common.AnyValue) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: value}
}

func mapOf(of ...*common.KeyValue) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: of}}}
}

func number(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

func request(resourceAttributes []*common.KeyValue, records ...*logs.LogRecord) *logs.LogsData {
	return &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource:  &resources.Resource{Attributes: resourceAttributes},
		ScopeLogs: []*logs.ScopeLogs{{LogRecords: records}},
	}}}
}

func translate(tb testing.TB, of proto.Message) (string, Translation) {
	tb.Helper()
	wire, err := proto.Marshal(of)
	testenv.Must(tb, err)
	var to bytes.Buffer
	done, err := new(Translator).Translate(wire, false, receipt, &to)
	testenv.Must(tb, err)
	return to.String(), done
}

// The table of the package's documentation, row by row.
func TestRecordsBecomeEntries(t *testing.T) {
	const at = uint64(1769860800123456789)
	for _, c := range []struct {
		name   string
		of     []*common.KeyValue
		record *logs.LogRecord
		want   string
	}{
		{"time", nil, &logs.LogRecord{TimeUnixNano: at, ObservedTimeUnixNano: 1, Body: text("m")},
			`{"timestamp":"2026-01-31T12:00:00.123456789Z","level":"info","message":"m","metadata":{}}`},
		{"observed", nil, &logs.LogRecord{ObservedTimeUnixNano: at, SeverityNumber: 17, TraceId: make([]byte, 16)}, `{"timestamp":"2026-01-31T12:00:00.123456789Z","level":"error","message":"","metadata":{}}`},
		{"receipt", nil, &logs.LogRecord{SeverityText: "WARNING", EventName: "cart.opened"},
			`{"timestamp":"2026-11-29T08:00:00Z","level":"warn","message":"cart.opened","metadata":{}}`},
		{"empty body", nil, &logs.LogRecord{TimeUnixNano: 1e9, Body: new(common.AnyValue), EventName: "cart.opened"},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"cart.opened","metadata":{}}`},
		{"attributes", []*common.KeyValue{attr("service.name", text("cart")), attr("region", text("eu"))},
			&logs.LogRecord{TimeUnixNano: 1e9, Body: text(`say "a"` + "\n"), EventName: "e", TraceId: []byte{0xab, 1}, SpanId: []byte{2}, SeverityNumber: 5, SeverityText: "loud",
				Attributes: []*common.KeyValue{attr("region", text("us")), attr("n", number(-5)), attr("o", mapOf(attr("k", nil), attr("x", mapOf())))}},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"debug","message":"say \"a\"\n","metadata":{"region":"us","n":-5,"o":{"k":null,"x":{}},"service.name":"cart",` +
				`"trace_id":"ab01","span_id":"02","event_name":"e","severity_text":"loud","resource":{"region":"eu"}}}`},
		{"names of other members", []*common.KeyValue{attr("trace_id", text("r")), attr("scope", text("r")), attr("resource", text("r")), attr("region", text("eu"))},
			&logs.LogRecord{TimeUnixNano: 1e9, Body: mapOf(attr("msg", text("hi"))), EventName: "e", TraceId: []byte{1}, SeverityText: "loud", Attributes: []*common.KeyValue{
				attr("body", text("own")), attr("event_name", text("own")), attr("severity_text", text("own")), attr("region", text("us"))}},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"hi","metadata":{"body":"own","event_name":"own","severity_text":"own","region":"us",` +
				`"trace_id":"r","scope":"r","resource":"r"}}`},
		{"environment", []*common.KeyValue{attr("deployment.environment", text("old")), attr("deployment.environment.name", text("prod"))},
			&logs.LogRecord{TimeUnixNano: 1e9, Body: text("m")},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"m","environment":"prod","metadata":{"deployment.environment":"old","deployment.environment.name":"prod"}}`},
		{"exception", nil, &logs.LogRecord{TimeUnixNano: 1e9, SeverityNumber: 24, Body: text("m"), Attributes: []*common.KeyValue{
			attr("exception.type", text("E")), attr("exception.message", text("")), attr("exception.stacktrace", text("E: x\r\n\n  at f\n")), attr("a", number(1))}},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"fatal","message":"m","error":{"type":"E","stack_trace":["E: x","  at f"]},"metadata":{"exception.message":"","a":1}}`},
		{"map as body", nil, &logs.LogRecord{TimeUnixNano: 1e9, Body: mapOf(attr("msg", text("hi")), attr("n", number(1)))},
			`{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"hi","metadata":{"body":{"msg":"hi","n":1}}}`},
		{"number as body", nil, &logs.LogRecord{TimeUnixNano: 1e9, Body: number(7)}, `{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"7","metadata":{"body":7}}`},
		{"list as body", nil, &logs.LogRecord{TimeUnixNano: 1e9, Body: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{
			Values: []*common.AnyValue{text("a"), nil}}}}}, `{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"[\"a\",null]","metadata":{"body":["a",null]}}`},
	} {
		if got, _ := translate(t, request(c.of, c.record)); got != `{"logs":[`+c.want+`]}` {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// full is a writer that has no room.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A small request can become a large body, as each record repeats the
// attributes of its resource. What has no room is not translated to the end.
func TestStopsWithItsWriter(t *testing.T) {
	large := []*common.KeyValue{attr("a", text(strings.Repeat("x", flushed)))}
	records := make([]*logs.LogRecord, 100)
	for i := range records {
		records[i] = new(logs.LogRecord)
	}
	wire, err := proto.Marshal(request(large, records...))
	testenv.Must(t, err)
	translator := new(Translator)
	if _, err := translator.Translate(wire, false, receipt, full{}); !errors.Is(err, errFull) || translator.records != 1 {
		t.Errorf("%d records were translated: %v", translator.records, err)
	}
}

// A body that is no text and larger than what is written at once is still
// one string: its record alone is at fault, not the request.
func TestLargeBodyOfNoText(t *testing.T) {
	body, _ := translate(t, request(nil, &logs.LogRecord{Body: mapOf(attr("k", text(strings.Repeat("x", 2*flushed))))}, &logs.LogRecord{Body: text("m")}))
	batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(body))
	if err != nil || len(batch.Accepted) != 1 || batch.Faults[0].Code != ingest.CodeMessageTooLarge {
		t.Errorf("%v, %+v", err, batch)
	}
}

func TestSeverities(t *testing.T) {
	for n := range int32(26) {
		want := []string{"debug", "debug", "info", "warn", "error", "fatal"}[max(0, min(n-1, 23))/4]
		if n == 0 || n == 25 {
			want = "info"
		}
		if got := (&record{severity: uint64(n)}).level().String(); got != want { //nolint:gosec // not negative
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// A request has an identity if each record has one: the same for the same
// request, another for one of another sender whose ids are not unique.
func TestIdentity(t *testing.T) {
	uid := func(ids ...string) []byte {
		var records []*logs.LogRecord
		for _, id := range ids {
			record := &logs.LogRecord{Body: text("m")}
			if id != "" {
				record.Attributes = []*common.KeyValue{attr("log.record.uid", text(id))}
			}
			records = append(records, record)
		}
		_, done := translate(t, request(nil, records...))
		return done.Identity
	}
	if a := uid("a", "b"); a == nil || !bytes.Equal(a, uid("a", "b")) || bytes.Equal(a, uid("ab", "")) || bytes.Equal(a, uid("a", "c")) {
		t.Errorf("%x", a)
	}
	record := &logs.LogRecord{Body: text("m"), Attributes: []*common.KeyValue{attr("log.record.uid", text("1"))}}
	_, one := translate(t, request([]*common.KeyValue{attr("host.name", text("a"))}, record))
	if _, other := translate(t, request([]*common.KeyValue{attr("host.name", text("b"))}, record)); bytes.Equal(one.Identity, other.Identity) {
		t.Error("two hosts with one counter are taken for one request")
	}
	if uid("a", "") != nil || uid() != nil {
		t.Error("an identity without that of each record")
	}
}

func TestRefusesWhatIsNotOTLP(t *testing.T) {
	deep := text("x")
	for range maxDepth {
		deep = mapOf(attr("k", deep))
	}
	wire, _ := proto.Marshal(request(nil, &logs.LogRecord{Body: deep}))
	many := make([]*common.KeyValue, maxAttributes+1)
	for i := range many {
		many[i] = new(common.KeyValue)
	}
	ofRecord, _ := proto.Marshal(request(nil, &logs.LogRecord{Attributes: many}))
	ofResource, _ := proto.Marshal(request(many, &logs.LogRecord{}))
	for name, body := range map[string][]byte{
		"text": []byte("no"), "cut": wire[:len(wire)-1], "deep": wire, "attributes of a record": ofRecord, "of a resource": ofResource,
	} {
		var invalid *Invalid
		if _, err := new(Translator).Translate(body, false, receipt, new(bytes.Buffer)); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ToProtobuf([]byte(`{"resourceLogs":5}`)); err == nil {
		t.Error("JSON of another shape is read")
	}
}

// JSON of the protocol has hexadecimal ids and names in camel case, and is
// the same request.
func TestJSON(t *testing.T) {
	wire, err := ToProtobuf([]byte(`{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"s","version":"1"},"logRecords":[{"timeUnixNano":"1000000000","severityNumber":9,"unknown":1,
		"body":{"stringValue":"m"},"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174","attributes":[{"key":"b","value":{"bytesValue":"AQI="}},{"key":"d","value":{"doubleValue":1.5}}]}]}]}]}`))
	testenv.Must(t, err)
	var to bytes.Buffer
	if _, err := new(Translator).Translate(wire, false, receipt, &to); err != nil {
		t.Fatal(err)
	}
	want := `{"logs":[{"timestamp":"1970-01-01T00:00:01Z","level":"info","message":"m","metadata":{"b":"AQI=","d":1.5,"trace_id":"5b8efff798038103d269b633813fc60c",` +
		`"span_id":"eee19b7ec3c1b174","scope":{"name":"s","version":"1"}}}]}`
	if to.String() != want {
		t.Errorf("%s\nwant\n%s", &to, want)
	}
}

// What a request in JSON takes is known before, also of many empty messages.
func TestWorkingMemory(t *testing.T) {
	for _, of := range []struct{ begin, each, end string }{
		{`{"resourceLogs":[`, `{}`, `]}`},
		{`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`, `{}`, `]}]}]}`},
		{`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`,
			`{"timeUnixNano":"1","body":{"stringValue":"cart opened"},"attributes":[{"key":"a","value":{"intValue":"4"}}]}`, `]}]}]}`},
	} {
		body := []byte(of.begin + strings.Repeat(of.each+",", 50_000) + of.each + of.end)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		data := new(logs.LogsData)
		testenv.Must(t, protojson.Unmarshal(body, data))
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(data)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > WorkingMemory(body) { //nolint:gosec // both fit
			t.Errorf("%s: %d bytes hold %d, not %d", of.each, len(body), held, WorkingMemory(body))
		}
	}
}

// Random requests become what the generated types say they hold.
func TestAgreesWithGeneratedTypes(t *testing.T) {
	random := rand.New(rand.NewPCG(20261129, 2))
	for range 3_000 {
		of := &logs.LogsData{}
		for range random.IntN(3) {
			one := request(randomAttributes(random, 0)).GetResourceLogs()[0]
			for range random.IntN(4) {
				one.ScopeLogs[0].LogRecords = append(one.ScopeLogs[0].LogRecords, randomRecord(random))
			}
			of.ResourceLogs = append(of.ResourceLogs, one)
		}
		got, done := translate(t, of)
		var body struct{ Logs []map[string]any }
		if err := json.Unmarshal([]byte(got), &body); err != nil || !jsontext.Value(got).IsValid() { // the latter: no name is twice
			t.Fatalf("%v: %s", err, got)
		}
		want := expected(of)
		if done.Records != len(want) || len(body.Logs) != len(want) {
			t.Fatalf("%d records, want %d", done.Records, len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(body.Logs[i], want[i]) {
				t.Fatalf("got\n%v\nwant\n%v\nof\n%v", body.Logs[i], want[i], of)
			}
		}
		if batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(got)); len(want) > 0 && (err != nil || len(batch.Accepted) != len(want)) {
			t.Fatalf("%v, %v of %s", err, batch.Faults, got)
		}
	}
}

// Any bytes are refused, or become JSON with so many entries.
func FuzzTranslate(f *testing.F) {
	wire, _ := proto.Marshal(request([]*common.KeyValue{attr("a", number(1))}, &logs.LogRecord{Body: text("m"), TraceId: []byte{1}}))
	f.Add(wire)
	f.Fuzz(func(t *testing.T, body []byte) {
		var to bytes.Buffer
		done, err := new(Translator).Translate(body, false, receipt, &to)
		if proto.Unmarshal(body, &logs.LogsData{}) == nil && err != nil && !strings.Contains(err.Error(), "nest") {
			t.Fatalf("refused: %v", err)
		}
		var entries struct{ Logs []json.RawMessage }
		if err == nil && (json.Unmarshal(to.Bytes(), &entries) != nil || len(entries.Logs) != done.Records) {
			t.Fatalf("%d records became %s", done.Records, &to)
		}
	})
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func randomText(random *rand.Rand) string {
	return pick(random, "", "m", "é\u2028\u0000\"\\", "a\nb", strings.Repeat("long ", 1_000*random.IntN(2)), "error")
}

func randomValue(random *rand.Rand, depth int) *common.AnyValue {
	switch random.IntN(8 - min(depth, 3)) {
	case 0:
		return nil
	case 1:
		return number(random.Int64() - 1<<62)
	case 2:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: pick(random, 0, 1.5, -1e-9, 1e300, math.Inf(1), math.NaN())}}
	case 3:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: random.IntN(2) == 0}}
	case 4:
		return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte(pick(random, "", "\x00\xff", "bytes"))}}
	case 5:
		return mapOf(randomAttributes(random, depth+1)...)
	case 6:
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{randomValue(random, depth+1)}}}}
	}
	return text(randomText(random))
}

func randomAttributes(random *rand.Rand, depth int) (of []*common.KeyValue) {
	names := []string{"a", "b.c", "service.name", "deployment.environment", "exception.type", "exception.stacktrace", "trace_id", "log.record.uid",
		"body", "event_name", "severity_text", "resource"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:random.IntN(4)] {
		of = append(of, attr(name, randomValue(random, depth)))
	}
	return of
}

func randomRecord(random *rand.Rand) *logs.LogRecord {
	record := &logs.LogRecord{
		TimeUnixNano: pick(random, 0, 1, 1769860800_000000000, uint64(math.MaxUint64)), ObservedTimeUnixNano: pick(random, 0, uint64(5e18)),
		SeverityNumber: logs.SeverityNumber(random.IntN(26)), SeverityText: pick(random, "", "Info", "x"), Body: randomValue(random, 0),
		Attributes: randomAttributes(random, 0), EventName: pick(random, "", "event"),
	}
	if random.IntN(2) == 0 {
		record.TraceId, record.SpanId = []byte{1, 2, 0xff}, []byte{3}
	}
	return record
}

// expected is the naive translation.
func expected(of *logs.LogsData) (entries []map[string]any) {
	for _, r := range of.GetResourceLogs() {
		for _, s := range r.GetScopeLogs() {
			for _, record := range s.GetLogRecords() {
				entries = append(entries, expectedEntry(r.GetResource().GetAttributes(), record))
			}
		}
	}
	return entries
}

func expectedEntry(of []*common.KeyValue, r *logs.LogRecord) map[string]any {
	at := receipt
	if nanos := max(r.GetTimeUnixNano(), 0); nanos > 0 {
		at = unixNano(nanos)
	} else if r.GetObservedTimeUnixNano() > 0 {
		at = unixNano(r.GetObservedTimeUnixNano())
	}
	level := (&record{severity: uint64(r.GetSeverityNumber()), severityText: []byte(r.GetSeverityText())}).level() //nolint:gosec // not negative
	metadata, again, failure := map[string]any{}, map[string]any{}, map[string]any{}
	entry := map[string]any{"timestamp": at.UTC().Format(time.RFC3339Nano), "level": level.String(), "message": expectedMessage(r), "metadata": metadata}
	for _, a := range r.GetAttributes() {
		if member := map[string]string{"exception.type": "type", "exception.stacktrace": "stack_trace"}[a.GetKey()]; member != "" && a.GetValue().GetStringValue() != "" {
			failure[member] = any(a.GetValue().GetStringValue())
			if member == "stack_trace" {
				lines := []any{}
				for line := range strings.SplitSeq(a.GetValue().GetStringValue(), "\n") {
					lines = append(lines, line)
				}
				failure[member] = lines
			}
			continue
		}
		metadata[a.GetKey()] = plain(a.GetValue())
	}
	own := func(name string) bool {
		return slices.ContainsFunc(r.GetAttributes(), func(a *common.KeyValue) bool { return a.GetKey() == name })
	}
	named := func(name string) bool {
		return own(name) || slices.ContainsFunc(of, func(a *common.KeyValue) bool { return a.GetKey() == name })
	}
	for _, a := range of {
		if a.GetKey() == "deployment.environment" && a.GetValue().GetStringValue() != "" {
			entry["environment"] = a.GetValue().GetStringValue()
		}
		if own(a.GetKey()) {
			again[a.GetKey()] = plain(a.GetValue())
		} else {
			metadata[a.GetKey()] = plain(a.GetValue())
		}
	}
	if len(r.GetTraceId()) > 0 {
		if !named("trace_id") {
			metadata["trace_id"] = hex.EncodeToString(r.GetTraceId())
		}
		metadata["span_id"] = hex.EncodeToString(r.GetSpanId())
	}
	if r.GetEventName() != "" && r.GetBody() != nil && !named("event_name") {
		metadata["event_name"] = r.GetEventName()
	}
	if s := r.GetSeverityText(); (s == "x" || s == "Info" && level != ingest.SeverityInfo) && !named("severity_text") {
		metadata["severity_text"] = s
	}
	if _, isText := r.GetBody().GetValue().(*common.AnyValue_StringValue); r.GetBody() != nil && !isText && !named("body") {
		metadata["body"] = plain(r.GetBody())
	}
	if len(again) > 0 && !named("resource") {
		metadata["resource"] = again
	}
	if len(failure) > 0 {
		entry["error"] = failure
	}
	return entry
}

func expectedMessage(r *logs.LogRecord) string {
	switch r.GetBody().GetValue().(type) {
	case *common.AnyValue_StringValue:
		return r.GetBody().GetStringValue()
	case nil:
		if r.GetBody() == nil {
			return r.GetEventName()
		}
	}
	t := new(Translator)
	body, _ := proto.Marshal(r.GetBody())
	_ = t.value(body, 1)
	return string(t.out)
}

// plain is a value as encoding/json decodes it.
func plain(v *common.AnyValue) any {
	switch of := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return of.StringValue
	case *common.AnyValue_BoolValue:
		return of.BoolValue
	case *common.AnyValue_IntValue:
		f, _ := strconv.ParseFloat(strconv.FormatInt(of.IntValue, 10), 64)
		return f
	case *common.AnyValue_DoubleValue:
		switch f := of.DoubleValue; {
		case math.IsNaN(f):
			return "NaN"
		case math.IsInf(f, 1):
			return "+Inf"
		default:
			return f
		}
	case *common.AnyValue_BytesValue:
		return base64.StdEncoding.EncodeToString(of.BytesValue)
	case *common.AnyValue_ArrayValue:
		list := []any{}
		for _, item := range of.ArrayValue.GetValues() {
			list = append(list, plain(item))
		}
		return list
	case *common.AnyValue_KvlistValue:
		members := map[string]any{}
		for _, a := range of.KvlistValue.GetValues() {
			members[a.GetKey()] = plain(a.GetValue())
		}
		return members
	}
	return nil
}

func BenchmarkTranslate(b *testing.B) {
	of := request([]*common.KeyValue{attr("service.name", text("cart")), attr("deployment.environment.name", text("prod"))})
	for i := range 100 {
		of.ResourceLogs[0].ScopeLogs[0].LogRecords = append(of.ResourceLogs[0].ScopeLogs[0].LogRecords, &logs.LogRecord{
			TimeUnixNano: 1769860800_000000000 + uint64(i), SeverityNumber: 9, Body: text("cart 4711 was opened by a customer who looked at 12 articles before " + strconv.Itoa(i)), TraceId: make([]byte, 16), SpanId: make([]byte, 8), //nolint:gosec // small
			Attributes: []*common.KeyValue{attr("http.request.method", text("GET")), attr("http.route", text("/carts/{id}")), attr("ms", number(int64(i))), attr("customer", text(strings.Repeat("x", 150)))},
		})
	}
	wire, _ := proto.Marshal(of)
	t, to := new(Translator), new(bytes.Buffer)
	b.SetBytes(int64(len(wire)))
	b.ReportAllocs()
	for b.Loop() {
		to.Reset()
		if _, err := t.Translate(wire, false, receipt, to); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(to.Len()), "bytes-out")
}

package shippers

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirlog/weir/ingest/internal/otlp"
	"github.com/weirlog/weir/shared/testenv"
)

// entries returns what a request of OTLP becomes.
func entries(t *testing.T, request []byte) string {
	t.Helper()
	var body bytes.Buffer
	_, err := new(otlp.Translator).Translate(request, false, time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC), &body)
	testenv.Must(t, err)
	return body.String()
}

// push writes a PushRequest of one stream, whose entries have a line and a
// member of structured metadata each.
func push(labels string, lines ...[3]string) []byte {
	text := func(to []byte, field protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), value)
	}
	stream := text(nil, 1, labels)
	for i, l := range lines {
		at := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1769860800)
		at = protowire.AppendVarint(protowire.AppendTag(at, 2, protowire.VarintType), uint64(i)*1000)
		entry := text(appendMessage(nil, 1, at), 2, l[0])
		if l[1] != "" {
			entry = appendMessage(entry, 3, text(text(nil, 1, l[1]), 2, l[2]))
		}
		stream = appendMessage(stream, 2, entry)
	}
	return s2.EncodeSnappy(nil, appendMessage(nil, 1, stream))
}

// Labels and structured metadata become metadata, but for the level and the
// environment; protobuf and JSON become the same.
func TestLoki(t *testing.T) {
	const want = `{"logs":[` +
		`{"timestamp":"2026-01-31T12:00:00Z","level":"warn","message":"slow \"cart\"","environment":"prod","metadata":{"app":"cart","deployment.environment.name":"prod"}},` +
		`{"timestamp":"2026-01-31T12:00:00.000001Z","level":"error","message":"no cart","environment":"prod","metadata":{"app":"cart","deployment.environment.name":"prod"}},` +
		`{"timestamp":"2026-01-31T12:00:00.000002Z","level":"warn","message":"","environment":"prod","metadata":{"user":"7","app":"cart","deployment.environment.name":"prod"}}]}`
	inProtobuf, err := Loki(push(`{app="cart", env="prod", level="WARNING"}`, [3]string{`slow "cart"`}, [3]string{"no cart", "detected_level", "error"}, [3]string{"", "user", "7"}), 9)
	testenv.Must(t, err)
	if got := entries(t, inProtobuf); got != want {
		t.Errorf("protobuf:\n%s\nwant\n%s", got, want)
	}
	inJSON, err := LokiJSON([]byte(`{"streams":[{"values":[["1769860800000000000","slow \"cart\""],["1769860800000001000","no cart",{"detected_level":"error"}],
		["1769860800000002000","",{"user":"7"}]],"stream":{"app":"cart","env":"prod","level":"WARNING"}}, {"stream":null, "values":null}], "other": 1}`), 9)
	testenv.Must(t, err)
	if got := entries(t, inJSON); got != want {
		t.Errorf("JSON:\n%s\nwant\n%s", got, want)
	}
}

// What is no push request says where.
func TestLokiFaults(t *testing.T) {
	for body, want := range map[string]string{
		`[]`: "instead of {", `{"streams":{}}`: "instead of [", `{"streams":[]} x`: "after its end", `{"streams":[{"values":[["1"]]}]}`: "no time and line",
		`{"streams":[{"values":[["1","a"],["1","a"],["1","a"]]}]}`: "more than 2", `{"streams":[{"stream":{` + strings.Repeat(`"a":"",`, 950) + `"a":""}}]}`: "more than 950", `{"streams":[{"stream":{"a":1}}]}`: `"a" is 1`, `{"streams":[`: "EOF",
	} {
		if _, err := LokiJSON([]byte(body), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"text":     {[]byte("hello"), "Snappy"},
		"protobuf": {s2.EncodeSnappy(nil, []byte("hello")), "malformed"},
		"labels":   {push("app=cart"), "braces"},
		"a label":  {push(`{app=cart}`), "can't be read"},
		"lines":    {push(`{}`, [3]string{}, [3]string{}, [3]string{}), "more than 2"},
		"metadata": {s2.EncodeSnappy(nil, appendMessage(nil, 1, appendMessage(nil, 2, bytes.Repeat([]byte{0x1a, 0}, 951)))), "more than 950"},
	} {
		if _, err := Loki(c.body, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// What OTLP can't say, or nobody can read as a time, is kept as it was
// sent, and the entry has the time of its receipt.
func TestTimes(t *testing.T) {
	const receipt = `"timestamp":"2026-11-29T08:00:00Z"`
	for _, text := range []string{"-5", "0", "soon", "99999999999999999999"} {
		request, err := LokiJSON([]byte(`{"streams":[{"values":[["`+text+`","a"]]}]}`), 1)
		testenv.Must(t, err)
		if got := entries(t, request); !strings.Contains(got, receipt) || !strings.Contains(got, `"metadata":{"timestamp":"`+text+`"}`) {
			t.Errorf("Loki at %s: %s", text, got)
		}
	}
	for _, at := range []string{`"2611-01-31T00:00:00Z"`, `"1969-12-31T00:00:00Z"`, `0`, `-5`, `"soon"`, `null`} {
		request, _, err := Bulk([]byte("{\"create\":{}}\n{\"@timestamp\":"+at+"}"), 1)
		testenv.Must(t, err)
		if got := entries(t, request); !strings.Contains(got, receipt) || !strings.Contains(got, `"metadata":{"@timestamp":`+at+`}`) {
			t.Errorf("bulk at %s: %s", at, got)
		}
	}
	request, _, err := Bulk([]byte("{\"create\":{}}\n{\"@timestamp\":\"2554-07-21T23:34:32Z\"}"), 1)
	testenv.Must(t, err)
	if got := entries(t, request); !strings.Contains(got, `"timestamp":"2554-07-21T23:34:32Z"`) {
		t.Errorf("the last second: %s", got)
	}
}

// Documents become entries by the Elastic Common Schema, as objects or with
// names that have dots. What can't be read is a fault of its document.
func TestBulk(t *testing.T) {
	lines := []string{
		`{"create":{"_index":"logs","_id":"a"}}`,
		`{"@timestamp":"2026-01-31T13:00:00+01:00","message":"no cart","log":{"level":"ERROR","logger":"shop"},"service":{"name":"cart","environment":"prod"},` +
			`"error":{"type":"KeyError","message":"7","stack_trace":"KeyError: 7\n  at cart.go:3"},"ms":[12,1.5,null,true]}`,
		`{"delete":{"_id":"b"}}`,
		``,
		`{"index":{}}`,
		`{"log":"from a container","timestamp":1769860800000,"error.type":"E","level":7,"big":9007199254740993}`,
		`{"update":{"_id":"c"}}`, `{"doc":{}}`,
		`{"index":{"_id":12}}`, `{"message":null,"log":"text","service":{"environment":7},"error":{"type":"X","stack_trace":"` + strings.Repeat(`  at a(a.go:12)\n`, 30) + `"}}`,
		`{"index":{}}`, `{"message":"broken"`,
		`{"index":{}}`, `{"deep":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`,
	}
	request, items, err := Bulk([]byte(strings.Join(lines, "\n")), 10)
	testenv.Must(t, err)
	const want = `{"logs":[` +
		`{"timestamp":"2026-01-31T12:00:00Z","level":"error","message":"no cart","environment":"prod","error":{"type":"KeyError","message":"7","stack_trace":["KeyError: 7","  at cart.go:3"]},` +
		`"metadata":{"log":{"level":"ERROR","logger":"shop"},"service":{"name":"cart","environment":"prod"},"ms":[12,1.5,null,true],"_index":"logs","log.record.uid":"a","deployment.environment.name":"prod"}},` +
		`{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"from a container","error":{"type":"E"},"metadata":{"level":7,"big":9007199254740993}},` +
		`{"timestamp":"2026-11-29T08:00:00Z","level":"info","message":"text","error":{"type":"X","stack_trace":[%s]},"metadata":{"message":null,"service":{"environment":7},"log.record.uid":"12"}}]}`
	if got, want := entries(t, request), fmt.Sprintf(want, strings.TrimSuffix(strings.Repeat(`"  at a(a.go:12)",`, 30), ",")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var records []int
	faults := ""
	for _, item := range items {
		records = append(records, item.Record)
		faults += item.Fault + "\n"
	}
	if want := []int{0, -1, 1, -1, 2, -1, -1}; !reflect.DeepEqual(records, want) {
		t.Errorf("records %v, want %v", records, want)
	}
	for _, part := range []string{"There is no delete", "There is no update", "unexpected EOF", "64 levels"} {
		if !strings.Contains(faults, part) {
			t.Errorf("the faults\n%slack %q", faults, part)
		}
	}
	if items[0].Index != "logs" || items[0].ID != "a" || items[0].Action != "create" {
		t.Errorf("%+v", items[0])
	}
}

// A message of syslog as rsyslog 8.2302 sends it by the page's configuration.
func TestSyslog(t *testing.T) {
	request, _, err := Bulk([]byte(`{"index":{"_index": "system"}}`+"\n"+`{"@timestamp":"2026-11-30T21:00:00.123+02:00", "log.level":"crit", "message":"could not \"connect\"", `+
		`"service.name":"postgres", "host.name":"db1", "syslog.facility":"user", "syslog.procid":"77"}`+"\n"), 10)
	testenv.Must(t, err)
	const want = `{"logs":[{"timestamp":"2026-11-30T19:00:00.123Z","level":"fatal","message":"could not \"connect\"",` +
		`"metadata":{"service.name":"postgres","host.name":"db1","syslog.facility":"user","syslog.procid":"77","_index":"system"}}]}`
	if got := entries(t, request); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for severity, level := range map[string]string{"emerg": "fatal", "alert": "fatal", "err": "error", "warning": "warn", "notice": "info", "debug": "debug"} {
		request, _, err := Bulk(fmt.Appendf(nil, "{\"index\":{}}\n{\"message\":\"m\",\"log.level\":%q}", severity), 10)
		if got := entries(t, request); err != nil || !strings.Contains(got, `"level":"`+level+`"`) {
			t.Errorf("%s: %s %v", severity, got, err)
		}
	}
}

// What would make the whole request no OTLP is a fault of its document.
func TestBulkLimits(t *testing.T) {
	nested := func(depth int) string { return `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}` }
	wide := func(fields int) string {
		return "{" + strings.TrimSuffix(strings.Repeat(`"a":1,`, fields), ",") + "}"
	}
	for document, fault := range map[string]bool{nested(64): false, nested(65): true, wide(949): false, wide(950): true, `{"a":1e400}`: true} {
		request, items, err := Bulk([]byte("{\"create\":{\"_id\":\"1\"}}\n"+document), 1)
		if err != nil || (items[0].Fault != "") != fault {
			t.Errorf("%.20s… of %d bytes: %+v, %v", document, len(document), items, err)
			continue
		}
		entries(t, request)
	}
}

func TestBulkFaults(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":"no action"}`: "line 1", "{\"create\":{}}\n": "missing", "{}\n{}": "line 1", strings.Repeat("{\"create\":{}}\n{}\n", 4): "more than 3",
	} {
		if _, _, err := Bulk([]byte(body), 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
}

// Hostile bodies take no more memory than WorkingMemory says.
func TestWorkingMemory(t *testing.T) {
	const size = 2 << 20
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	snappy := func(stream []byte) []byte { return s2.EncodeSnappy(nil, appendMessage(nil, 1, stream)) }
	entry := func(content string) []byte { return snappy(appendMessage(nil, 2, []byte(content))) }
	loki := func(body []byte) { _, _ = Loki(body, 20_000) }
	inJSON := func(body []byte) { _, _ = LokiJSON(body, 20_000) }
	bulk := func(body []byte) { _, _, _ = Bulk(body, 20_000) }
	for name, c := range map[string]struct {
		rewrite func([]byte)
		body    []byte
		bytes   int64
	}{
		"pairs":       {loki, entry(fill("\x1a\x00")), size},
		"entries":     {loki, snappy([]byte(fill("\x12\x00"))), size},
		"streams":     {loki, s2.EncodeSnappy(nil, []byte(fill("\x0a\x00"))), size},
		"a line":      {loki, entry("\x12" + string(protowire.AppendVarint(nil, size)) + fill("x")), size},
		"JSON values": {inJSON, []byte(`{"streams":[{"values":[` + fill(`["1",""],`) + `["1",""]]}]}`), size},
		"JSON labels": {inJSON, []byte(`{"streams":[{"stream":{` + fill(`"a":"",`) + `"a":""}}]}`), size},
		"actions":     {bulk, []byte(fill("{\"create\":{}}\n{}\n")), size},
		"numbers":     {bulk, []byte("{\"create\":{}}\n{\"a\":[" + fill("1.5,") + "1]}\n"), size},
		"nested":      {bulk, []byte("{\"create\":{}}\n{\"a\":" + strings.Repeat("[", 62) + `"` + fill("x") + `"` + strings.Repeat("]", 62) + "}\n"), size},
		"fields":      {bulk, []byte("{\"create\":{}}\n{" + fill(`"a":1,`) + "\"a\":1}\n"), size},
		"objects":     {bulk, []byte("{\"create\":{}}\n{\"a\":[" + fill("{},") + "{}]}\n"), size},
	} {
		if peak := peakOf(func() { c.rewrite(c.body) }); peak > WorkingMemory(c.bytes)+1<<20 {
			t.Errorf("%s: %d bytes at once, said to be at most %d", name, peak, WorkingMemory(c.bytes))
		}
	}
}

// peakOf returns how much the heap grew at most, with garbage that a
// collection after each step would leave.
func peakOf(work func()) int64 {
	percent := debug.SetGCPercent(5)
	defer debug.SetGCPercent(percent)
	runtime.GC()
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(live)
	before, peak := live[0].Value.Uint64(), uint64(0)
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			metrics.Read(live)
			peak = max(peak, live[0].Value.Uint64())
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	work()
	close(done)
	<-over
	return int64(peak - before) //nolint:gosec // far below
}

// Nothing makes rewriting panic, or write what is no request.
func FuzzShippers(f *testing.F) {
	f.Add([]byte(`{"streams":[{"stream":{"app":"cart"},"values":[["1769860800000000000","a",{"b":"c"}]]}]}`))
	f.Add([]byte("{\"create\":{}}\n{\"error\":{\"type\":[]},\"log\":{\"level\":1}}\n"))
	f.Add(push(`{app="cart"}`, [3]string{"a", "b", "c"}))
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(request []byte, err error) {
			if err == nil {
				if _, err = new(otlp.Translator).Translate(request, false, time.Unix(0, 0), new(bytes.Buffer)); err != nil {
					t.Errorf("%q became %q: %v", body, request, err)
				}
			}
		}
		read(LokiJSON(body, 1000))
		if UnpackedLoki(body) < 1<<20 {
			read(Loki(body, 1000))
		}
		request, items, err := Bulk(body, 1000)
		read(request, err)
		if n := bytes.Count(body, []byte("\n")); len(items) > n+1 {
			t.Errorf("%d items of %d lines", len(items), n+1)
		}
		_ = fmt.Sprint(items)
	})
}

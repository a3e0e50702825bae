package tracingtest

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is an exported span.
type Span struct {
	Service string
	Name    string
	Trace   string // id
	ID      string
	Parent  string   // id; "": none
	Links   []string // ids of spans
	Failed  bool

	Attributes map[string]string // texts and numbers
}

// A Collector keeps the spans that it receives.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	raw   bytes.Buffer
}

// New starts a collector for the time of the test.
func New(t testing.TB) *Collector {
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Spans returns the received spans, in order.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Raw returns all that was received, unchanged.
func (c *Collector) Raw() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.raw.Bytes())
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "no OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(service, span))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func spanOf(service string, from *trace.Span) Span {
	span := Span{
		Service: service, Name: from.GetName(), Trace: hex.EncodeToString(from.GetTraceId()), ID: hex.EncodeToString(from.GetSpanId()),
		Parent: hex.EncodeToString(from.GetParentSpanId()), Failed: from.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
		Attributes: make(map[string]string),
	}
	for _, link := range from.GetLinks() {
		span.Links = append(span.Links, hex.EncodeToString(link.GetSpanId()))
	}
	for _, attribute := range from.GetAttributes() {
		span.Attributes[attribute.GetKey()] = valueOf(attribute.GetValue())
	}
	return span
}

func valueOf(value *common.AnyValue) string {
	if text, ok := value.GetValue().(*common.AnyValue_StringValue); ok {
		return text.StringValue
	}
	return strconv.FormatInt(value.GetIntValue(), 10)
}

// Exemplars returns the trace ids that a handler of metrics shows
// beside a histogram's buckets in OpenMetrics.
func Exemplars(metrics http.Handler, histogram string) (traces []string) {
	scrape := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	scrape.Header.Set("Accept", "application/openmetrics-text")
	shown := httptest.NewRecorder()
	metrics.ServeHTTP(shown, scrape)
	bucket := regexp.MustCompile(`(?m)^` + histogram + `_bucket\{.*\} \d+ # \{trace_id="([0-9a-f]{32})"\} `)
	for _, found := range bucket.FindAllStringSubmatch(shown.Body.String(), -1) {
		traces = append(traces, found[1])
	}
	return traces
}

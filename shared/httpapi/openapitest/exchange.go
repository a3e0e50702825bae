package openapitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirlog/weir/shared/httpapi/routetest"
)

// lines is the content type of a list with one item a line.
const lines = "application/x-ndjson"

// events is the content type of server-sent events, which no schema describes.
const events = "text/event-stream"

// An exchange is a request and its answer.
type exchange struct {
	request  *http.Request
	sent     *body // the request's
	status   int
	header   http.Header
	answered *body
}

// check fails the test if the document does not describe the exchange.
func (d *document) check(t testing.TB, e exchange) {
	t.Helper()
	path := e.request.URL.Path
	describes := strings.HasPrefix(path, "/v1/openapi") || strings.HasSuffix(path, "/openapi.json")
	if describes || !strings.HasPrefix(path, "/v1/") || e.request.Method == http.MethodHead {
		return
	}
	if err := d.compare(e); err != nil {
		t.Errorf("the OpenAPI document does not describe %s %s, answered %d: %v", e.request.Method, e.request.URL, e.status, err)
	}
}

// compare returns how the exchange differs from the document.
func (d *document) compare(e exchange) error {
	route, parameters, err := d.router.FindRoute(e.request)
	if errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed) {
		return d.compareRefusal(e, err)
	}
	if err != nil {
		return err
	}
	observed.note(route.Method, route.Path, strconv.Itoa(e.status), true)
	input := &openapi3filter.RequestValidationInput{Request: e.request, PathParams: parameters, Route: route}
	return errors.Join(e.compareAnswer(input), e.compareRequest(input))
}

// compareRefusal compares a request without an operation in the document.
func (d *document) compareRefusal(e exchange, reason error) error {
	if e.status < http.StatusBadRequest || d.problem == nil {
		return reason
	}
	if !e.answered.complete() {
		return nil
	}
	if got := mediaType(e.header); got != "application/problem+json" {
		return fmt.Errorf("the answer is %q, want a problem", got)
	}
	return compareJSON(d.problem, e.answered.text)
}

// compareJSON returns how a JSON text differs from a schema.
func compareJSON(schema *openapi3.Schema, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("failed to decode %.100q: %w", text, err)
	}
	return compare(schema, value)
}

// compareAnswer checks status, headers, content type and body, except a
// body that the client did not read to its end, or one too long.
func (e exchange) compareAnswer(request *openapi3filter.RequestValidationInput) error {
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: e.status, Header: e.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !e.answered.complete() || mediaType(e.header) == events},
	}
	text := e.answered.text
	if mediaType(e.header) == lines {
		var err error
		if text, err = e.pageOfLines(input); err != nil {
			return err
		}
	}
	input.SetBodyBytes(text)
	schema := schemaOfJSON(input)
	if schema == nil || input.Options.ExcludeResponseBody {
		return openapi3filter.ValidateResponse(context.Background(), input)
	}
	input.Options.ExcludeResponseBody = true
	return errors.Join(openapi3filter.ValidateResponse(context.Background(), input), compareJSON(schema, text))
}

// schemaOfJSON returns the schema of a JSON answer's body; nil if the
// answer is not JSON or not described.
func schemaOfJSON(input *openapi3filter.ResponseValidationInput) *openapi3.Schema {
	responses := input.RequestValidationInput.Route.Operation.Responses
	described := cmp.Or(responses.Status(input.Status), responses.Default())
	kind := mediaType(input.Header)
	if described == nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil
	}
	media := described.Value.Content.Get(kind)
	if media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// pageOfLines returns the JSON page with the same items as the lines.
func (e exchange) pageOfLines(input *openapi3filter.ResponseValidationInput) ([]byte, error) {
	described := input.RequestValidationInput.Route.Operation.Responses.Status(e.status)
	if described == nil || described.Value.Content[lines] == nil {
		return nil, fmt.Errorf("no %s with status %d", lines, e.status)
	}
	end := bytes.LastIndexByte(e.answered.text, '\n')
	if rest := e.answered.text[end+1:]; e.answered.complete() && len(rest) > 0 {
		return nil, fmt.Errorf("the last line, %.100q, does not end", rest)
	}
	items := bytes.ReplaceAll(bytes.TrimSpace(e.answered.text[:end+1]), []byte("\n"), []byte(","))
	input.Header = e.header.Clone()
	input.Header.Set("Content-Type", "application/json")
	input.Options.ExcludeResponseBody = false
	return fmt.Appendf(nil, `{"items":[%s],"next_cursor":null}`, items), nil
}

// compareRequest checks a request that succeeded: what the document
// forbids must be refused.
func (e exchange) compareRequest(input *openapi3filter.RequestValidationInput) error {
	if e.status/100 != 2 || e.isPartial() {
		return nil
	}
	input.Options = &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // the answer shows that the credential was valid
		ExcludeRequestBody: !e.sent.complete() || e.request.Header.Get("Content-Encoding") != "", SkipSettingDefaults: true,
	}
	input.Request = e.request.Clone(context.Background())
	input.Request.Body = io.NopCloser(bytes.NewReader(e.sent.text))
	return openapi3filter.ValidateRequest(context.Background(), input)
}

// isPartial reports whether the answer names faults of the request:
// then only a part of it was done.
func (e exchange) isPartial() bool {
	var answer struct{ Errors []any }
	return json.Unmarshal(e.answered.text, &answer) == nil && len(answer.Errors) > 0
}

func mediaType(header http.Header) string {
	name, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return name
}

// Main runs a package's tests, for its TestMain, and returns the exit
// status: also not 0 if an answer that a document describes was never
// given. Unproduced names answers that no test can get, as "GET
// /v1/things 429", with the reason; it is a fault to name one that was
// given, or that no document describes.
func Main(m *testing.M, unproduced map[string]string) int {
	return routetest.Run(m, routetest.Check{
		What: "answers that the OpenAPI document describes and no test of this package has got, or that are excused in vain",
		Find: func() []string { return observed.missing(unproduced) },
	})
}

// answers are those that documents describe, with whether each was
// given. Safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	given map[string]bool // by "METHOD path status"; bounded by the documents
}

var observed = answers{given: map[string]bool{}}

// describe adds all answers of a document.
func (a *answers) describe(api *openapi3.T) {
	for path, item := range api.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				a.note(method, path, status, false)
			}
		}
	}
}

func (a *answers) note(method, path, status string, given bool) {
	answer := method + " " + path + " " + status
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given[answer] = a.given[answer] || given
}

// missing returns the answers never given and the needless excuses;
// also if no document was read at all.
func (a *answers) missing(excused map[string]string) (found []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.given) == 0 {
		return []string{"all: no document was read"}
	}
	for _, answer := range slices.Sorted(maps.Keys(a.given)) {
		if reason := excused[answer]; a.given[answer] == (reason != "") {
			found = append(found, answer)
		}
	}
	for _, answer := range slices.Sorted(maps.Keys(excused)) {
		if _, described := a.given[answer]; !described {
			found = append(found, answer+", which no document describes")
		}
	}
	return found
}

package openapitest_test

import (
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/testenv"
)

//go:embed testdata/openapi.json
var description string

// A failures collects errors instead of failing.
type failures struct {
	testing.TB
	found []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

// An answer is the module's answer to everything but a request
// for its document.
type answer struct {
	status            int
	contentType, text string
	header            map[string]string
}

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/openapi.json" {
		_, _ = io.WriteString(w, description)
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.text)
}

const (
	isJSON    = "application/json"
	isLines   = "application/x-ndjson"
	isProblem = "application/problem+json"
)

var left = map[string]string{"X-Left": "3"}

// cases are requests and answers, with the expected faults; none if they match.
var cases = map[string]struct {
	request string // method, path and body
	answer  answer
	want    string
}{
	"as described": {"GET /v1/things", answer{200, isJSON, `{"items":[{"name":"a","size":1,"free":{"x":1}}],"next_cursor":null}`, left}, ""},
	"a member that is not described": {
		"GET /v1/things", answer{200, isJSON, `{"items":[],"next_cursor":null,"more":true}`, left}, "more"},
	"a member of an item that is not described": {
		"GET /v1/things", answer{200, isJSON, `{"items":[{"name":"a","colour":"red"}],"next_cursor":null}`, left}, "colour"},
	"a member of another type": {
		"GET /v1/things", answer{200, isJSON, `{"items":[{"name":"a","size":"1"}],"next_cursor":null}`, left}, "want integer"},
	"a member that is missing":           {"GET /v1/things", answer{200, isJSON, `{"items":[{}],"next_cursor":null}`, left}, "missing property 'name'"},
	"no JSON":                            {"GET /v1/things", answer{200, isJSON, `{"items":`, left}, "failed to decode"},
	"a header that is missing":           {"GET /v1/things", answer{200, isJSON, `{"items":[],"next_cursor":null}`, nil}, `"X-Left" missing`},
	"a header of another type":           {"GET /v1/things", answer{200, isJSON, `{"items":[],"next_cursor":null}`, map[string]string{"X-Left": "few"}}, "X-Left"},
	"another content type":               {"GET /v1/things", answer{200, "text/html", `<p>`, left}, "text/html"},
	"a status that is not described":     {"GET /v1/things", answer{418, isProblem, `{"code":"teapot"}`, nil}, "status is not supported"},
	"lines as described":                 {"GET /v1/things", answer{200, isLines, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n", left}, ""},
	"no lines":                           {"GET /v1/things", answer{200, isLines, "", left}, ""},
	"a line that is not described":       {"GET /v1/things", answer{200, isLines, "{\"name\":\"a\"}\n{\"nam\":\"b\"}\n", left}, "nam"},
	"a line that does not end":           {"GET /v1/things", answer{200, isLines, "{\"name\":\"a\"}\n{\"name\":", left}, "does not end"},
	"a problem as described":             {"GET /v1/things", answer{404, isProblem, `{"code":"not_found"}`, nil}, ""},
	"a problem with another member":      {"GET /v1/things", answer{404, isProblem, `{"code":"not_found","trace":"main.go"}`, nil}, "trace"},
	"a problem of another content type":  {"GET /v1/things", answer{404, isJSON, `{"code":"not_found"}`, nil}, isJSON},
	"a path that is not described":       {"GET /v1/others", answer{200, isJSON, `{}`, nil}, "no matching operation"},
	"a path that is not there":           {"GET /v1/others", answer{404, isProblem, `{"code":"not_found"}`, nil}, ""},
	"a bare 404":                         {"GET /v1/others", answer{404, "text/plain", `404 page not found`, nil}, "want a problem"},
	"a method that is not there":         {"DELETE /v1/things", answer{405, isProblem, `{"code":"method_not_allowed","why":1}`, nil}, "why"},
	"a page of the console":              {"GET /console/things", answer{200, "text/html", `<p>`, nil}, ""},
	"composed":                           {`POST /v1/things {"name":"b"}`, answer{201, isJSON, `{"name":"b","before":{"name":"a"}}`, nil}, ""},
	"composed, with a member too many":   {`POST /v1/things {"name":"b"}`, answer{201, isJSON, `{"name":"b","before":{"name":"a"},"key":"k"}`, nil}, "key"},
	"composed, too many within":          {`POST /v1/things {"name":"b"}`, answer{201, isJSON, `{"name":"b","before":{"name":"a","key":"k"}}`, nil}, "key"},
	"a request that had to be refused":   {`POST /v1/things {"name":"too long"}`, answer{201, isJSON, `{"name":"b","before":{"name":"a"}}`, nil}, "maxLength"},
	"a request that was refused":         {`POST /v1/things {"name":"too long"}`, answer{400, isProblem, `{"code":"too_long"}`, nil}, ""},
	"a request of which a part was good": {`POST /v1/things {"name":"too long"}`, answer{201, isJSON, `{"name":"b","before":{"name":"a"},"errors":[1]}`, nil}, "errors"},
}

// A handler's answers are compared with its document.
func TestHandler(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := &failures{TB: t}
			method, path, sent := split(c.request)
			request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(sent))
			request.Header.Set("Content-Type", isJSON)
			recorder := httptest.NewRecorder()
			openapitest.Handler(found, c.answer).ServeHTTP(recorder, request)
			expect(t, found, c.want)
			if recorder.Code != c.answer.status || recorder.Body.String() != c.answer.text {
				t.Errorf("got %d %s", recorder.Code, recorder.Body)
			}
		})
	}
}

// Answers over a network are compared as well, once they are read.
func TestTransport(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := &failures{TB: t}
			server := httptest.NewServer(c.answer)
			t.Cleanup(server.Close)
			method, path, sent := split(c.request)
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(sent))
			testenv.Must(t, err)
			request.Header.Set("Content-Type", isJSON)
			for _, transport := range []http.RoundTripper{
				openapitest.Transport(found, c.answer, server.Client().Transport), openapitest.Remote(found, server.Client().Transport),
			} {
				found.found = nil
				if text := read(t, transport, request); text != c.answer.text {
					t.Errorf("got %s", text)
				}
				expect(t, found, c.want)
			}
		})
	}
}

// read sends a request once and reads its answer.
func read(t *testing.T, transport http.RoundTripper, request *http.Request) string {
	t.Helper()
	again := request.Clone(t.Context())
	again.Body, _ = request.GetBody()
	response, err := transport.RoundTrip(again)
	testenv.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testenv.Must(t, err)
	return string(text)
}

// Answers of a process that serves no document fail the test at its
// end: nothing was checked.
func TestWithoutDocument(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	found := &failures{TB: t}
	t.Run("asks", func(t *testing.T) {
		found.TB = t
		response, err := (&http.Client{Transport: openapitest.Remote(found, server.Client().Transport)}).Get(server.URL + "/v1/things")
		testenv.Must(t, err)
		response.Body.Close()
	})
	expect(t, found, "no OpenAPI document")
}

// An answer that is not read to its end is compared only by its headers.
func TestClosedEarly(t *testing.T) {
	found := &failures{TB: t}
	page := answer{200, isJSON, `{"items":[],"next_cursor":null}`, nil}
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	client := http.Client{Transport: openapitest.Transport(found, page, server.Client().Transport)}
	response, err := client.Get(server.URL + "/v1/things")
	testenv.Must(t, err)
	response.Body.Close()
	expect(t, found, `"X-Left" missing`)
}

func split(request string) (method, path, body string) {
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ = strings.Cut(rest, " ")
	return method, path, body
}

func expect(t *testing.T, found *failures, want string) {
	t.Helper()
	all := strings.Join(found.found, "\n")
	if (all == "") != (want == "") || !strings.Contains(all, want) {
		t.Errorf("found %q, want %q", all, want)
	}
}

package http_test

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

var now = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// parse is what a handler reads of a request.
func parse(target string) (search ingest.Search, err error) {
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	err = errors.New("no handler was called")
	router.Get("/v1/logs", func(_ http.ResponseWriter, r *http.Request) { search, err = ingesthttp.ParseSearch(r, now) })
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	return search, err
}

// A tail takes what filters, and refuses what is of the past.
func TestTailQuery(t *testing.T) {
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Get("/tail", httpapi.Handle((&ingesthttp.Tails{}).Show))
	for query, says := range map[string]string{
		"from=2026-11-21T12:00:00Z": `The parameter \"from\" is unknown.`, "to=2026-11-21T12:00:00Z": "?to", "order=asc": "?order", "limit=1": "?limit", "cursor=abc": "?cursor",
		"level=loud": "?level", "q=level:loud": "At character 1 of q", "project=a&project=b": "given 2 times",
	} {
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/tail?"+query, nil))
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), says) {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
}

func TestParseSearch(t *testing.T) {
	query := "project=prj_1&from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00.000000001Z&level=warn&level=error&environment=prod&q=Checkout+failed&order=asc&limit=7"
	search, err := parse("/v1/logs?" + query)
	testenv.Must(t, err)
	wanted := ingest.SeveritySet(0).With(ingest.SeverityWarn).With(ingest.SeverityError)
	if search.Project != "prj_1" || search.Levels != wanted || search.Environment != "prod" || !search.OldestFirst || search.Limit != 7 {
		t.Errorf("search = %+v", search)
	}
	if search.From.Compare(*search.To) >= 0 || search.Query.String() != "Checkout failed" {
		t.Errorf("from %v, to %v, query %q", search.From, search.To, search.Query)
	}
}

// Times before now are counted from the moment of the request.
func TestTimesBeforeNow(t *testing.T) {
	search, err := parse("/v1/logs?from=-7d&to=-90s")
	if err != nil || search.From.String() != "2026-11-14T12:00:30Z" || search.To.String() != "2026-11-21T11:59:00Z" {
		t.Errorf("from %v to %v, %v", search.From, search.To, err)
	}
}

// An invalid parameter is refused with its name: an ignored filter
// would show too much.
func TestParseSearchRefuses(t *testing.T) {
	for _, c := range []struct{ name, value, pointer, code string }{
		{"from", "yesterday", "?from", "invalid_timestamp"},
		{"to", "2026-11-21T12:00:00+02:00", "?to", "invalid_timestamp"},
		{"from", "-15", "?from", "invalid_timestamp"},
		{"from", "-", "?from", "invalid_timestamp"},
		{"from", "-99999999999d", "?from", "invalid_timestamp"},
		{"from", "--1d", "?from", "invalid_timestamp"},
		{"level", "loud", "?level", "invalid_level"},
		{"q", "!?", "?q", "invalid_request"},
		{"order", "newest", "?order", "invalid_request"},
		{"limit", "1001", "?limit", "invalid_request"},
		{"cursor", "abc", "?cursor", "invalid_cursor"},
		{"cursor", base64.RawURLEncoding.EncodeToString([]byte(`{"a":{"s":0,"n":0,"b":"00000000000000000000000000000000","i":0}}`)), "?cursor", "invalid_cursor"},
		{"levels", "warn", "?levels", "invalid_request"},
	} {
		_, err := parse("/v1/logs?" + url.Values{c.name: {c.value}}.Encode())
		var problem *httpapi.Problem
		if !errors.As(err, &problem) || problem.Code != c.code || problem.Faults[0].Pointer != c.pointer || problem.Faults[0].Fix == "" {
			t.Errorf("%s=%s: %v, want %s at %s with a fix", c.name, c.value, err, c.code, c.pointer)
		}
	}
}

// A query with a malformed part, a repeated value or a to
// before from is refused too.
func TestParseSearchOverlooksNothing(t *testing.T) {
	for query, pointer := range map[string]string{
		"level=fatal;x=1":                 "?",
		"level=%zz":                       "?",
		"project=prj_1&project=prj_2":     "?project",
		"environment=dev&environment=dev": "?environment",
		"q=a&level=info&q=b":              "?q",
		"limit=1&limit=2":                 "?limit",
		"cursor=&cursor=a":                "?cursor",
		"from=2026-11-21T12:00:00.000000001Z&to=2026-11-21T12:00:00Z": "?to",
	} {
		_, err := ingesthttp.ParseSearch(httptest.NewRequest("GET", "/v1/logs?"+query, nil), now)
		var problem *httpapi.Problem
		if !errors.As(err, &problem) || problem.Status != 400 || problem.Code != "invalid_request" || problem.Faults[0].Pointer != pointer {
			t.Errorf("%s: %v, want invalid_request at %s", query, err, pointer)
		}
	}
}

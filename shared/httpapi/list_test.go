package httpapi_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

type position struct {
	Name string `json:"name"`
}

// callerHeader names the caller in these tests.
const callerHeader = "X-Caller"

type callerKey struct{}

func callerOf(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}

// ask runs in within a list request, with cursors that have key; nil: none yet.
func ask(t *testing.T, key []byte, caller, target string, in func(r *http.Request) error) (problem *httpapi.Problem) {
	t.Helper()
	cursors := httpapi.NewCursors(callerOf)
	if key != nil {
		cursors.Use(key)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Cursors: cursors})
	asked := false
	router.Get("/*", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		asked = true
		err := in(r.WithContext(context.WithValue(r.Context(), callerKey{}, r.Header.Get(callerHeader))))
		errors.As(err, &problem)
		return err
	}))
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set(callerHeader, caller)
	router.ServeHTTP(httptest.NewRecorder(), r)
	if !asked {
		t.Fatalf("%s did not get to its handler", target)
	}
	return problem
}

func key(b byte) []byte { return []byte{b, 31: 0} }

// A cursor continues the list that it was made for, in any process with
// the same key, and no other.
func TestACursorIsOfOneList(t *testing.T) {
	var made string
	const query = "/v1/things?level=warn&level=error&project=p"
	ask(t, key(1), "org_1", query, func(r *http.Request) error {
		list := httpapi.NewList(r, []string{"a", "b", "c"}, 2, func(last string) any { return position{last} })
		if len(list.Items) != 2 || list.NextCursor == nil {
			t.Fatalf("list = %+v, want two items and a cursor", list)
		}
		made = *list.NextCursor
		return nil
	})
	for name, test := range map[string]struct {
		key            byte
		caller, target string
		well           bool
	}{
		"the next page":           {1, "org_1", query + "&cursor=" + made, true},
		"a page of another size":  {1, "org_1", query + "&limit=7", true},
		"in another order":        {1, "org_1", "/v1/things?project=p&level=warn&level=error", true},
		"with an empty filter":    {1, "org_1", query + "&q=", true},
		"another organization":    {1, "org_2", query, false},
		"another path":            {1, "org_1", "/v1/others?level=warn&level=error&project=p", false},
		"without a filter":        {1, "org_1", "/v1/things?level=warn&level=error", false},
		"with one more":           {1, "org_1", query + "&q=x", false},
		"another value":           {1, "org_1", "/v1/things?level=warn&level=info&project=p", false},
		"another installation":    {2, "org_1", query, false},
		"what a filter runs into": {1, "org_1", "/v1/things?level=warn&level=error&project=p%26q", false},
	} {
		var next position
		problem := ask(t, key(test.key), test.caller, test.target, func(r *http.Request) error { return httpapi.DecodeCursor(r, made, &next) })
		if well := problem == nil && next.Name == "b"; well != test.well || !test.well && problem.Code != "invalid_cursor" {
			t.Errorf("%s: leads to %+v, %v", name, next, problem)
		}
	}
}

// Forged, changed and unsigned cursors are refused.
func TestForgedCursors(t *testing.T) {
	ask(t, key(1), "org_1", "/v1/things", func(r *http.Request) error {
		made := httpapi.EncodeCursor(r, position{"b"})
		raw, err := base64.RawURLEncoding.DecodeString(made)
		testenv.Must(t, err)
		forged := []string{"", "!", "AA", made + "x", made[:len(made)-4], base64.RawURLEncoding.EncodeToString([]byte(`{"name":"b"}`))}
		for i := range raw {
			changed := append([]byte(nil), raw...)
			changed[i] ^= 1
			forged = append(forged, base64.RawURLEncoding.EncodeToString(changed))
		}
		for _, cursor := range forged {
			var problem *httpapi.Problem
			if err := httpapi.DecodeCursor(r, cursor, &position{}); !errors.As(err, &problem) || problem.Status != http.StatusBadRequest || problem.Code != "invalid_cursor" {
				t.Errorf("DecodeCursor(%q) = %v, want invalid_cursor", cursor, err)
			}
		}
		return nil
	})
}

// Without its key a process reads no cursors, and reports a transient failure.
func TestCursorsWaitForTheirKey(t *testing.T) {
	problem := ask(t, nil, "org_1", "/v1/things", func(r *http.Request) error { return httpapi.DecodeCursor(r, "AA", &position{}) })
	if problem == nil || problem.Code != httpapi.CodeUnavailable || problem.Header.Get("Retry-After") == "" {
		t.Errorf("%v, want unavailable", problem)
	}
}

// Each part of a query is parsed or refused, never ignored.
func TestQuery(t *testing.T) {
	for query, ok := range map[string]bool{
		"": true, "at=2026-11-20T14:00:00Z": true, "at=2026-11-20T14:00:00.123456789Z&project=a": true, "project=": true,
		"level=a&level=b": true, "At=2026-11-20T14:00:00Z": false, "unknown=": false, "project=a&project=b": false,
		"project=a;level=b": false, "project=%zz": false,
		"at=2026-11-20T14:00:00%2B01:00": false, "at=2026-11-20T14:00:00": false, "at=yesterday": false, "at=0001-01-01T00:00:00Z": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
		err := httpapi.OnlyKnown(r, []string{"level"}, "at", "project")
		if err == nil {
			_, err = httpapi.QueryTime(r.URL.Query(), "at")
		}
		if (err == nil) != ok {
			t.Errorf("%q: %v", query, err)
		}
	}
}

// A to before from is refused, where both are given.
func TestCheckSpan(t *testing.T) {
	early, late := "2026-11-20T14:00:00Z", "2026-11-20T14:00:00.5Z"
	for span, ok := range map[[2]string]bool{{early, late}: true, {late, early}: false, {early, early}: true, {early, ""}: true, {"", early}: true} {
		query := url.Values{"from": {span[0]}, "to": {span[1]}}
		from, _ := httpapi.QueryTime(query, "from")
		to, _ := httpapi.QueryTime(query, "to")
		if err := httpapi.CheckSpan(query, from, to); (err == nil) != ok {
			t.Errorf("%v: %v", span, err)
		}
	}
}

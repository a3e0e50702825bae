package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

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

package openapitest

import (
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// An answer that was never given is found, unless it is excused; so is
// a needless excuse.
func TestMissing(t *testing.T) {
	a := &answers{given: map[string]bool{}}
	if found := a.missing(nil); len(found) != 1 {
		t.Errorf("without a document: %q", found)
	}
	d, err := parse(t.Context(), []byte(`{"openapi":"3.1.0","info":{"title":"Things","version":"1"},"paths":{"/v1/things":{"get":{"responses":{
		"200":{"description":"a"},"404":{"description":"b"},"429":{"description":"c"},"500":{"description":"d"}}}}}}`))
	testenv.Must(t, err)
	a.describe(d.api)
	a.note("GET", "/v1/things", "200", true)
	a.note("GET", "/v1/things", "500", true)
	found := a.missing(map[string]string{"GET /v1/things 429": "overload", "GET /v1/things 500": "never", "PUT /v1/things 200": "gone"})
	want := []string{"GET /v1/things 404", "GET /v1/things 500", "PUT /v1/things 200, which no document describes"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

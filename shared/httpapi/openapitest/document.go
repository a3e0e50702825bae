package openapitest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// documentPath is where every module and the gateway serve their documents.
const documentPath = "/v1/openapi.json"

// A document describes requests and answers. Safe for concurrent use.
type document struct {
	api     *openapi3.T
	router  routers.Router
	problem *openapi3.Schema // of a request without an operation
}

// loaded keeps documents by their text: loading one takes longer
// than most tests.
var loaded sync.Map

// load reads the document that module serves.
func load(t testing.TB, module http.Handler) *document {
	t.Helper()
	recorder := httptest.NewRecorder()
	module.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, documentPath, nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("GET %s answers %d: %s", documentPath, recorder.Code, recorder.Body)
	}
	described, err := parsed(t.Context(), recorder.Body.Bytes())
	if err != nil {
		t.Fatalf("%s: %v", documentPath, err)
	}
	return described
}

func parsed(ctx context.Context, text []byte) (*document, error) {
	sum := sha256.Sum256(text)
	if known, ok := loaded.Load(sum); ok {
		return known.(*document), nil
	}
	d, err := parse(ctx, text)
	if err == nil {
		observed.describe(d.api)
		loaded.Store(sum, d)
	}
	return d, err
}

// parse reads a document and closes its response schemas: an answer may
// have no undescribed member. Clients must expect more members; authors
// must describe them.
func parse(ctx context.Context, text []byte) (*document, error) {
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if err := closeAnswers(root); err != nil {
		return nil, err
	}
	closed, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	api, err := openapi3.NewLoader().LoadFromData(closed)
	if err != nil {
		return nil, err
	}
	if err := api.Validate(ctx); err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(api)
	return &document{api: api, router: router, problem: problemOf(api)}, err
}

func problemOf(api *openapi3.T) *openapi3.Schema {
	if api.Components == nil {
		return nil
	}
	for name, schema := range api.Components.Schemas {
		if isProblem(name) {
			return schema.Value
		}
	}
	return nil
}

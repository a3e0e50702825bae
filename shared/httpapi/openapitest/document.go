package openapitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"
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

// compiledSchemas keeps the schemas of answers: kin-openapi compiles a
// schema again for each value, which takes longer than most requests.
var compiledSchemas sync.Map

// compare returns how a value differs from a schema without references.
func compare(schema *openapi3.Schema, value any) error {
	known, ok := compiledSchemas.Load(schema)
	if !ok {
		compiled, err := compile(schema)
		if err != nil {
			return err
		}
		known, _ = compiledSchemas.LoadOrStore(schema, compiled)
	}
	return known.(*jsonschema.Schema).Validate(value)
}

func compile(schema *openapi3.Schema) (*jsonschema.Schema, error) {
	const name = "schema.json"
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	described, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	if err := compiler.AddResource(name, described); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// isInt64 checks a format of OpenAPI that JSON Schema lacks.
func isInt64(value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	if _, err := strconv.ParseInt(number.String(), 10, 64); err != nil {
		return fmt.Errorf("%s is no int64", number)
	}
	return nil
}

// maxDepth exceeds the levels of any schema that does not contain itself.
const maxDepth = 64

// compositions are the keywords whose parts describe the same object.
var compositions = []string{"allOf", "anyOf", "oneOf"}

// closeAnswers replaces the schemas of all answers by closed ones.
func closeAnswers(root map[string]any) error {
	for _, operations := range object(root["paths"]) {
		for _, operation := range object(operations) {
			if err := closeEach(root, object(object(operation)["responses"])); err != nil {
				return err
			}
		}
	}
	components := object(root["components"])
	if err := closeProblems(root, object(components["schemas"])); err != nil {
		return err
	}
	return closeEach(root, object(components["responses"]))
}

// closeProblems closes the schemas for answers to undescribed requests.
func closeProblems(root, schemas map[string]any) (err error) {
	for name, schema := range schemas {
		if isProblem(name) {
			if schemas[name], err = closed(root, object(schema), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func isProblem(schema string) bool { return strings.HasSuffix(schema, "Problem") }

func closeEach(root, responses map[string]any) error {
	for _, response := range responses {
		for _, media := range object(object(response)["content"]) {
			schema, err := closed(root, object(object(media)["schema"]), 0)
			if err != nil {
				return err
			}
			object(media)["schema"] = schema
		}
	}
	return nil
}

// closed returns a copy of schema, without references, that allows only
// the members it names.
func closed(root, schema map[string]any, depth int) (map[string]any, error) {
	whole, err := inlined(root, schema, depth)
	if err != nil {
		return nil, err
	}
	_, names := whole["properties"]
	_, decides := whole["additionalProperties"]
	composes := slices.ContainsFunc(compositions, func(keyword string) bool { return whole[keyword] != nil })
	if (names || composes) && !decides {
		whole["unevaluatedProperties"] = false
	}
	return whole, nil
}

// inlined returns a copy of schema without references. Its parts are
// closed; it stays open, as it may be part of a composition.
func inlined(root, schema map[string]any, depth int) (_ map[string]any, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a schema holds itself, or is more than %d deep", maxDepth)
	}
	if ref, ok := schema["$ref"].(string); ok {
		target := resolve(root, ref)
		if target == nil {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
		return inlined(root, target, depth+1)
	}
	whole := maps.Clone(schema)
	for keyword, value := range schema {
		if whole[keyword], err = inlineKeyword(root, keyword, value, depth+1); err != nil {
			return nil, err
		}
	}
	return whole, nil
}

// inlineKeyword returns a copy of a keyword's value.
func inlineKeyword(root map[string]any, keyword string, value any, depth int) (_ any, err error) {
	switch inner := value.(type) {
	case map[string]any:
		if keyword == "items" || keyword == "additionalProperties" {
			return closed(root, inner, depth)
		}
		if keyword == "properties" {
			return closeMembers(root, inner, depth)
		}
	case []any:
		if slices.Contains(compositions, keyword) {
			return inlineParts(root, inner, depth)
		}
	}
	return value, nil
}

func closeMembers(root, members map[string]any, depth int) (_ map[string]any, err error) {
	all := map[string]any{}
	for name, schema := range members {
		if all[name], err = closed(root, object(schema), depth); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func inlineParts(root map[string]any, parts []any, depth int) (_ []any, err error) {
	all := make([]any, len(parts))
	for i, part := range parts {
		if all[i], err = inlined(root, object(part), depth); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// resolve returns the target of a reference within the document; nil if
// there is none.
func resolve(root map[string]any, ref string) map[string]any {
	place := root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		place = object(place[name])
	}
	return place
}

// object returns value as a JSON object; nil if it is none.
func object(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}

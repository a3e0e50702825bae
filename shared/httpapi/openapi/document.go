package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

type object = map[string]any

// A Module is what its operations have in common. Names of components
// begin with the module's: documents of all modules are joined, of
// different versions perhaps.
type Module struct {
	Name        string // such as grouping
	Tag         string // of the operations
	Description string // of the tag
	Credential  Credential
	Problem     any            // a value of the type of error answers; nil: httpapi.ProblemBody
	Problems    map[int]string // what each status means that any operation may answer, and 404 those with an id in the path
}

// A Credential is what callers send.
type Credential struct {
	name   string
	scheme object
}

// APIKey is an API key, and ServiceToken a service token.
var (
	APIKey       = Credential{"APIKey", object{"type": "apiKey", "in": "header", "name": "x-api-key"}}
	ServiceToken = Credential{"ServiceToken", object{
		"type": "http", "scheme": "bearer", "description": "weirsvc_ followed by 48 hexadecimal characters",
	}}
)

// Document describes the operations of the module.
func (m Module) Document(operations []Operation) []byte {
	w := newWriter(m)
	paths := map[string]object{}
	for _, operation := range operations {
		method, path, _ := strings.Cut(operation.Route, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = w.described(operation, path)
	}
	text, err := json.Marshal(object{
		"openapi": "3.1.0", "info": object{"title": "Weir " + m.Name, "version": "1"},
		"tags":  []any{object{"name": m.Tag, "description": m.Description}},
		"paths": paths,
		"components": object{
			"securitySchemes": object{w.scheme(): m.Credential.scheme}, "schemas": w.schemas.components, "headers": w.headers(),
		},
	})
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot encode the description of %s: %v", m.Name, err))
	}
	return text
}

// A writer describes the operations of a module.
type writer struct {
	Module
	prefix  string // of the names of components
	schemas schemas
	problem any // the schema of error answers
}

func newWriter(m Module) *writer {
	if m.Problem == nil {
		m.Problem = httpapi.ProblemBody{}
	}
	prefix := bare(m.Name)
	w := &writer{Module: m, prefix: prefix, schemas: schemas{prefix: prefix, components: object{}}}
	w.problem = w.schemas.answer(m.Problem)
	return w
}

func (w *writer) scheme() string { return w.Name + w.Credential.name }

func (w *writer) described(o Operation, path string) any {
	if o.Written != nil {
		return json.RawMessage(o.Written)
	}
	return w.operation(o, path)
}

func (w *writer) operation(o Operation, path string) object {
	described := object{
		"operationId": o.ID, "summary": o.Summary, "tags": []string{w.Tag}, "security": w.security(o), "responses": w.responses(o),
	}
	if o.Description != "" {
		described["description"] = o.Description
	}
	parameters := append(pathParametersOf(path), w.schemas.parametersOf(o.Headers, "header")...)
	if parameters = append(parameters, w.schemas.parametersOf(o.Query, "query")...); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if o.Body.Type != nil {
		described["requestBody"] = w.body(o.Body)
	}
	return described
}

func (w *writer) body(b Body) object {
	schema := w.schemas.request(b.Type, "json")
	if b.MaxItems > 0 {
		schema.WithMaxItems(b.MaxItems)
	}
	return object{"required": !b.Optional, "content": content("application/json", schema)}
}

// security returns the alternatives: a credential with any of the scopes.
func (w *writer) security(o Operation) []object {
	ways := []object{}
	if o.IsOpen() {
		return ways
	}
	for _, scope := range o.Scopes {
		ways = append(ways, object{w.scheme(): []string{scope}})
	}
	if len(o.Scopes) == 0 {
		ways = append(ways, object{w.scheme(): []string{}})
	}
	return ways
}

func (w *writer) responses(o Operation) object {
	status := o.Answer.status()
	responses := object{strconv.Itoa(status): w.answer(o, status)}
	problems := maps.Clone(w.Problems)
	if o.IsOpen() {
		clear(problems)
	}
	if !strings.Contains(o.Route, "{") {
		delete(problems, http.StatusNotFound)
	}
	maps.Copy(problems, o.Problems)
	for status, description := range problems {
		problem := object{"description": description, "content": content("application/problem+json", w.problem)}
		if headers := w.headersOf(status); len(headers) > 0 {
			problem["headers"] = headers
		}
		responses[strconv.Itoa(status)] = problem
	}
	return responses
}

func (w *writer) answer(o Operation, status int) object {
	a := o.Answer
	forms := content("application/json", w.schemas.answer(a.Type))
	for _, text := range a.Texts {
		forms[text.Media] = object{"schema": object{"type": "string", "description": text.Description}}
	}
	description := a.Description
	if description == "" {
		description = http.StatusText(status)
	}
	described := object{"description": description, "content": forms}
	if !o.IsOpen() {
		described["headers"] = w.headersOf(status)
	}
	return described
}

func (a Answer) status() int {
	if a.Status == 0 {
		return http.StatusOK
	}
	return a.Status
}

func content(media string, schema any) object { return object{media: object{"schema": schema}} }

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

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
	forms := object{}
	if a.Type != nil {
		forms = content("application/json", w.schemas.answer(a.Type))
	}
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

// An Operation is a route: what mounts it and what describes it.
type Operation struct {
	Route  string // method and path, such as "GET /v1/things/{thing}"
	Handle func(http.ResponseWriter, *http.Request) error

	ID          string
	Summary     string
	Description string   // "": the summary says it all
	Scopes      []string // any of which a service token needs; Anybody: no credential

	Query   any // a struct whose fields have query tags; others are refused. nil: the query is not checked
	Headers any // a struct whose fields have header tags; nil: none
	Body    Body
	Answer  Answer

	Problems map[int]string // what each status means, beside those of the module

	Written []byte // the operation as OpenAPI has it, instead of all that describes it here
}

// A Body is what a request sends.
type Body struct {
	Type     any // a value of the type that the body is decoded into; nil: no body
	Optional bool
	MaxItems int64 // of a list; 0: any
}

// An Answer is what a request gets if nothing is wrong.
type Answer struct {
	Status      int    // 0: 200
	Type        any    // a value of the type that is encoded; nil: it is never JSON
	Description string // "": the text of the status
	Texts       []Text // other forms of it, for those who ask for them
}

// A Text is an answer that is not JSON.
type Text struct{ Media, Description string }

// Anybody is the scope of a route without a credential and without a
// limit. Of the module's problems it has none.
const Anybody = "*"

// IsOpen reports whether the route needs no credential.
func (o Operation) IsOpen() bool { return slices.Contains(o.Scopes, Anybody) }

// Mount adds the route. A request with a parameter that Query lacks is refused.
func (o Operation) Mount(router chi.Router) {
	method, path, _ := strings.Cut(o.Route, " ")
	router.Method(method, path, httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if o.Query != nil {
			if err := OnlyKnown(r, o.Query); err != nil {
				return err
			}
		}
		return o.Handle(w, r)
	}))
}

// OnlyKnown refuses a request with a parameter that the struct query lacks.
func OnlyKnown(r *http.Request, query any) error {
	var once, repeatable []string
	for _, field := range fieldsOf(query, "query") {
		if field.repeatable {
			repeatable = append(repeatable, field.name)
		} else {
			once = append(once, field.name)
		}
	}
	return httpapi.OnlyKnown(r, repeatable, once...)
}

// rateLimitHeaders are those of each request that was counted.
var rateLimitHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Scope", "RateLimit-Policy", "RateLimit"}

const retryAfter = "Retry-After"

// headersOf refers to the headers of an answer.
func (w *writer) headersOf(status int) object {
	var names []string
	switch {
	case status < http.StatusBadRequest:
		names = rateLimitHeaders
	case status == http.StatusTooManyRequests:
		names = append([]string{retryAfter}, rateLimitHeaders...)
	case status >= http.StatusInternalServerError:
		names = []string{retryAfter}
	}
	headers := object{}
	for _, name := range names {
		headers[name] = object{"$ref": "#/components/headers/" + w.headerName(name)}
	}
	return headers
}

func (w *writer) headerName(header string) string {
	return w.prefix + strings.ReplaceAll(header, "-", "")
}

// headers are the components that headersOf refers to.
func (w *writer) headers() object {
	components := object{}
	for name, header := range map[string][2]string{
		"X-RateLimit-Limit":     {"integer", "Requests per minute of the level with the fewest tokens left"},
		"X-RateLimit-Remaining": {"integer", "Whole tokens left there"},
		"X-RateLimit-Reset":     {"integer", "Unix time in seconds at which that bucket is full again"},
		"X-RateLimit-Scope":     {"string", "organization, project or key: the API key, service token or session itself"},
		"RateLimit-Policy":      {"string", "draft-ietf-httpapi-ratelimit-headers: the policy of each level"},
		"RateLimit":             {"string", "draft-ietf-httpapi-ratelimit-headers: what is left at the tightest level"},
		retryAfter:              {"integer", "Seconds to wait, at least 1"},
	} {
		components[w.headerName(name)] = object{"required": true, "schema": object{"type": header[0]}, "description": header[1]}
	}
	return components
}

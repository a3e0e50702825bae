package openapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
)

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
	Type        any    // a value of the type that is encoded
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

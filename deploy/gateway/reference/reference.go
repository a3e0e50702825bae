// Package reference makes the page of the API from its OpenAPI document.
package reference

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

// NewPages returns what a Page is shown by, as "reference".
func NewPages() *ui.Pages { return ui.NewPages("", templates) }

// A Page has the operations of the API by their tags.
type Page struct{ Tags []Tag }

// A Tag is a topic of the API.
type Tag struct {
	Name, Description string
	Operations        []Operation
}

// An Operation is a method of a path.
type Operation struct {
	ID, Method, Path     string
	Summary, Description string
	Callers              string // who may call it
	Parameters           []Parameter
	Bodies               []Content
	Answers              []Answer
}

// A Parameter is one of a path, a query or a header.
type Parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema `json:"schema"`
	Values                string `json:"-"` // which it may have; "": any
}

// A Content is a body of a media type, with an example and the members that
// it must have; "": none.
type Content struct{ Media, Example, Required string }

// An Answer is what a status means.
type Answer struct {
	Status, Description string
	Contents            []Content // of success
}

// A document is what a Page needs of an OpenAPI document.
type document struct {
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]json.RawMessage // bounded by the document; operations by path and method
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          []map[string][]string // alternatives: scopes by the name of a scheme
	Parameters                        []Parameter
	RequestBody                       body
	Responses                         map[string]body
}

type body struct {
	Description string
	Content     map[string]struct {
		Schema  schema
		Example json.RawMessage
	}
}

// methods are those of a path, in the order of the page.
var methods = []string{"get", "post", "put", "patch", "delete"}

// Read reads an OpenAPI 3.1 document, which has its examples.
func Read(text []byte) (*Page, error) {
	var read document
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
	}
	page, places := new(Page), map[string]int{}
	for _, tag := range read.Tags {
		places[tag.Name] = len(page.Tags)
		page.Tags = append(page.Tags, Tag{Name: tag.Name, Description: tag.Description})
	}
	for _, path := range slices.Sorted(maps.Keys(read.Paths)) {
		for _, method := range methods {
			described, there := read.Paths[path][method]
			if !there {
				continue
			}
			var o operation
			if err := json.Unmarshal(described, &o); err != nil {
				return nil, fmt.Errorf("cannot read %s %s of the OpenAPI document: %w", method, path, err)
			}
			name := strings.Join(o.Tags, " ")
			place, known := places[name]
			if !known {
				place, places[name] = len(page.Tags), len(page.Tags)
				page.Tags = append(page.Tags, Tag{Name: name})
			}
			tag := &page.Tags[place]
			tag.Operations = append(tag.Operations, read.operation(strings.ToUpper(method), path, o))
		}
	}
	return page, nil
}

func (d *document) operation(method, path string, o operation) Operation {
	shown := Operation{
		ID: o.OperationID, Method: method, Path: path, Summary: o.Summary, Description: o.Description, Callers: callers(o.Security), Parameters: o.Parameters,
		Bodies: d.contents(o.RequestBody),
	}
	for i := range shown.Parameters {
		p := &shown.Parameters[i]
		p.Values = d.resolved(p.Schema).values()
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := Answer{Status: status, Description: o.Responses[status].Description}
		if strings.HasPrefix(status, "2") {
			answer.Contents = d.contents(o.Responses[status])
		}
		shown.Answers = append(shown.Answers, answer)
	}
	return shown
}

func (d *document) contents(of body) (contents []Content) {
	for _, media := range slices.Sorted(maps.Keys(of.Content)) {
		content := of.Content[media]
		contents = append(contents, Content{Media: media, Example: written(content.Example), Required: strings.Join(d.resolved(content.Schema).Required, ", ")})
	}
	return contents
}

// written is an example as it is sent; "": none.
func written(example json.RawMessage) string {
	var text string
	if example == nil || json.Unmarshal(example, &text) == nil {
		return text
	}
	return encoded(example, "  ")
}

// callers names who may call an operation.
func callers(security []map[string][]string) string {
	var ways []string
	for _, way := range security {
		for _, scheme := range slices.Sorted(maps.Keys(way)) {
			switch scopes := way[scheme]; {
			case !strings.HasSuffix(scheme, "ServiceToken"):
				ways = append(ways, "an API key in the header x-api-key")
			case len(scopes) == 0:
				ways = append(ways, "a service token")
			default:
				ways = append(ways, "a service token that may "+strings.Join(scopes, " or "))
			}
		}
	}
	if len(ways) == 0 {
		return "anybody"
	}
	return strings.Join(ways, ", or ")
}

package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A schema is what an example needs of a schema of JSON.
type schema struct {
	Ref                 string `json:"$ref"`
	Type                types
	Format              string
	Deprecated          bool
	Example, Const      any
	Examples, Enum      []any
	Properties          map[string]schema
	Items               *schema
	AnyOf, OneOf, AllOf []schema
}

// types are those that a value may have: one text, or several.
type types []string

func (t *types) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), "[") {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(text, &(*t)[0])
}

// maxDepth is how deep an example nests: schemas may refer to themselves.
const maxDepth = 6

// sample makes an example of a value; nil: any.
func (d *document) sample(s schema, depth int) any {
	given := slices.Concat([]any{s.Example, s.Const}, s.Examples, s.Enum)
	if i := slices.IndexFunc(given, func(v any) bool { return v != nil }); i >= 0 {
		return given[i]
	}
	if depth > maxDepth {
		return nil
	}
	if name, is := strings.CutPrefix(s.Ref, "#/components/schemas/"); is {
		return d.sample(d.Components.Schemas[name], depth+1)
	}
	for _, alternatives := range [][]schema{s.AllOf, s.AnyOf, s.OneOf} {
		if len(alternatives) > 0 {
			return d.sample(alternatives[0], depth+1)
		}
	}
	if len(s.Type) == 0 {
		return nil
	}
	switch s.Type[0] {
	case "object":
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if property := s.Properties[name]; !property.Deprecated {
				object[name] = d.sample(property, depth+1)
			}
		}
		return object
	case "array":
		if s.Items == nil {
			return []any{}
		}
		return []any{d.sample(*s.Items, depth+1)}
	case "boolean":
		return true
	case "integer", "number":
		return 1
	case "string":
		return text(s.Format)
	}
	return nil
}

func text(format string) string {
	switch format {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "uri":
		return "https://example.com/"
	case "email":
		return "ada@example.com"
	}
	return "…"
}

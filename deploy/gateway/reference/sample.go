package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A schema is what a page needs of a schema of JSON.
type schema struct {
	Ref                 string `json:"$ref"`
	Type                types
	Format, Pattern     string
	Deprecated          bool
	Example, Const      any
	Default             any
	Examples, Enum      []any
	Minimum, Maximum    any
	MinLength, MinItems int
	Required            []string
	Properties          map[string]schema
	Items               *schema
	AnyOf, OneOf, AllOf []schema
}

// UnmarshalJSON reads a schema, which may also be true: anything.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// types are those that a value may have: one text, or several.
type types []string

func (t *types) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(text, &(*t)[0])
}

// values says which values a parameter may have.
func (s schema) values() string {
	var said []string
	enum := s.Enum
	if s.Items != nil {
		enum = append(enum, s.Items.Enum...)
	}
	if len(enum) > 0 {
		said = append(said, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(enum)), ", "), "[]"))
	}
	for _, bound := range []struct {
		words string
		value any
	}{{"at least", s.Minimum}, {"at most", s.Maximum}, {"default", s.Default}} {
		if bound.value != nil {
			said = append(said, fmt.Sprintf("%s %v", bound.words, bound.value))
		}
	}
	return strings.Join(said, "; ")
}

// resolved follows references and takes the first of alternatives.
func (d *document) resolved(s schema) schema {
	for range 20 { // they may go round
		if name, is := strings.CutPrefix(s.Ref, "#/components/schemas/"); is {
			s = d.Components.Schemas[name]
			continue
		}
		first := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
		if len(first) == 0 || len(s.Type) > 0 {
			break
		}
		s = first[0]
	}
	return s
}

// maxDepth is how deep an example nests: schemas may contain themselves.
const maxDepth = 8

// sample makes an example of a value; nil: any.
func (d *document) sample(of schema, depth int) any {
	s := d.resolved(of)
	given := slices.Concat([]any{of.Example, of.Const, s.Example, s.Const}, s.Examples, s.Enum)
	if i := slices.IndexFunc(given, func(v any) bool { return v != nil }); i >= 0 {
		return given[i]
	}
	if depth > maxDepth || len(s.Type) == 0 {
		return nil
	}
	switch s.Type[0] {
	case "object":
		return d.object(s, depth)
	case "array":
		if s.Items == nil {
			return []any{}
		}
		return slices.Repeat([]any{d.sample(*s.Items, depth+1)}, max(s.MinItems, 1))
	case "boolean":
		return true
	case "integer", "number":
		if s.Minimum != nil {
			return s.Minimum
		}
		return 1
	case "string":
		said := text(s.Format, s.Pattern)
		return said + strings.Repeat("0", max(s.MinLength-len([]rune(said)), 0))
	}
	return nil
}

// object has what an object must have first, then what it may have.
func (d *document) object(s schema, depth int) any {
	var written bytes.Buffer
	written.WriteByte('{')
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		aFirst, bFirst := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		switch {
		case aFirst == bFirst:
			return strings.Compare(a, b)
		case aFirst:
			return -1
		}
		return 1
	})
	for _, name := range names {
		property := s.Properties[name]
		if property.Deprecated {
			continue
		}
		if written.Len() > 1 {
			written.WriteByte(',')
		}
		fmt.Fprintf(&written, "%q:%s", name, encoded(d.sample(property, depth+1), ""))
	}
	written.WriteByte('}')
	return json.RawMessage(written.Bytes())
}

func text(format, pattern string) string {
	switch format {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "uri":
		return "https://example.com/"
	case "email":
		return "ada@example.com"
	case "uuid":
		return "01a22e73-8a8b-7e2c-86ac-a5540089028c"
	}
	return cmp.Or(matching[pattern], "…")
}

// matching has texts that match the patterns of our documents.
var matching = map[string]string{ // bounded by what is here
	`^[A-Za-z0-9_-]+$`:                      "id_1",
	`^[ -~]+$`:                              "text",
	`^[0-9a-f]{64}$`:                        strings.Repeat("0a", 32),
	`^key_[0-9a-f]{32}$`:                    "key_" + strings.Repeat("0a", 16),
	`^weir_[0-9a-f]{48}$`:                   "weir_" + strings.Repeat("0a", 24),
	`^weirinv_[0-9a-f]{48}$`:                "weirinv_" + strings.Repeat("0a", 24),
	`^weirsvc_[0-9a-f]{48}$`:                "weirsvc_" + strings.Repeat("0a", 24),
	`^whsec_`:                               "whsec_" + strings.Repeat("Cg", 16),
	`^[a-z_]+\.[a-z_]+$`:                    "api_key.created",
	`^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$`: "billing:read",
}

// encoded is an example as it is sent.
func encoded(example any, indent string) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(example); err != nil {
		panic("BUG: cannot encode what was decoded: " + err.Error())
	}
	return strings.TrimSpace(text.String())
}

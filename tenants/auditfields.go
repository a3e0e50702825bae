package tenants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Fields are the state of a thing: strings, integers, booleans,
// times and lists of strings. Zero values are left out, so that
// a new field changes no old line.
type Fields map[string]any

// known leaves out zero values, and writes times as RFC 3339.
func (f Fields) nonZero() Fields {
	known := Fields{}
	for name, value := range f {
		if value = jsonValue(value); value != nil {
			known[name] = value
		}
	}
	return known
}

// plain is a value as JSON has it, or nil for the zero value.
func jsonValue(value any) any {
	var zero bool
	switch v := value.(type) {
	case string:
		zero = v == ""
	case bool:
		zero = !v
	case int:
		zero = v == 0
	case []string:
		zero = len(v) == 0
	case time.Time:
		value, zero = v.UTC().Format(time.RFC3339Nano), v.IsZero()
	default:
		panic(fmt.Sprintf("BUG: a field of the audit can't be a %T", value))
	}
	if zero {
		return nil
	}
	return value
}

// JSON is the fields as a JSON object, its members in order and
// nothing between them; "" for nil.
func (f Fields) JSON() string {
	if f == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		panic("BUG: " + err.Error()) // known leaves nothing that could fail
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// ParseFields is the inverse of Fields.JSON.
func ParseFields(text string) (fields Fields, err error) {
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&fields)
	return fields, err
}

// A Difference is a changed field, as people read it. "" is none.
type Difference struct {
	Field, Before, After string
}

// Differences lists the fields that have another value after a
// change than before, by name.
func (f Fields) Differences(after Fields) (differences []Difference) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(f)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was, is := readable(f[name]), readable(after[name]); was != is {
			differences = append(differences, Difference{name, was, is})
		}
	}
	return differences
}

func readable(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		words := make([]string, len(v))
		for i, word := range v {
			words[i] = readable(word)
		}
		return strings.Join(words, ", ")
	case []string:
		return strings.Join(v, ", ")
	}
	return fmt.Sprint(value)
}

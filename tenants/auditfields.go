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

// Fields are an entity's state: strings, integers,
// booleans, times and lists of strings. Zero values are
// left out, so that a new field changes no old line.
type Fields map[string]any

// nonZero leaves out zero values and formats times as RFC 3339.
func (f Fields) nonZero() Fields {
	known := Fields{}
	for name, value := range f {
		if value = jsonValue(value); value != nil {
			known[name] = value
		}
	}
	return known
}

// jsonValue is a value as in JSON, nil for the zero value.
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

// JSON is the fields as a JSON object, sorted
// and without white space; "" for nil.
func (f Fields) JSON() string {
	if f == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		panic("BUG: " + err.Error()) // nonZero leaves only what can be encoded
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

// A Difference is a changed field as readable text. "" is none.
type Difference struct {
	Field, Before, After string
}

// Differences lists the fields that a change altered, by name.
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

package grouping

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// Fields of a search line. A group has one value of most.
const (
	FieldIs          = "is"
	FieldAssigned    = "assigned"
	FieldType        = "type"
	FieldRelease     = "release"
	FieldEnvironment = "environment"
	FieldLevel       = "level"
	FieldService     = "service" // of alerts alone, as the next one
	FieldHost        = "host"
)

// Whom a search line may name beside members and labels.
const (
	Me     = "me" // who asks
	Nobody = "nobody"
)

var searchFields = []string{FieldIs, FieldAssigned, FieldType, FieldRelease, FieldEnvironment, FieldLevel, FieldService, FieldHost}

// A Term is a word of a search line, or a field that it names, such as is:resolved.
type Term struct{ Field, Value string }

// SearchWords divides a search line at its spaces, but not within quotes.
func SearchWords(line string) iter.Seq[string] {
	quoted := false
	return strings.FieldsFuncSeq(line, func(r rune) bool {
		quoted = quoted != (r == '"')
		return !quoted && unicode.IsSpace(r)
	})
}

// SearchTerms are the terms of a search line. In quotes nothing names a field.
func SearchTerms(line string) (terms []Term) {
	for word := range SearchWords(line) {
		of := Term{Value: word}
		if field, value, _ := strings.Cut(word, ":"); value != "" && slices.Contains(searchFields, field) {
			of = Term{field, value}
		}
		if of.Value = strings.ReplaceAll(of.Value, `"`, ""); of.Value != "" {
			terms = append(terms, of)
		}
	}
	return terms
}

// IsSingle reports whether a line may have one such term.
func (t Term) IsSingle() bool {
	return t.Field != "" && t.Field != FieldEnvironment && t.Field != FieldLevel
}

// String is the term as it is typed.
func (t Term) String() string {
	value := t.Value
	if strings.ContainsFunc(value, unicode.IsSpace) || t.Field == "" && strings.Contains(value, ":") {
		value = `"` + value + `"`
	}
	if t.Field == "" {
		return value
	}
	return t.Field + ":" + value
}

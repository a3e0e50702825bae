package ingest

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// A Field is what entries are counted by.
type Field struct {
	name  string
	paths []jsonPath // empty: it is in no text
}

// FieldProject is the name of the field that is the entry's project.
const FieldProject = "project"

// ParseField reads the name of a field: one of the query language, or project.
func ParseField(name string) (Field, error) {
	switch {
	case name == "", len(name) > maxFieldName, strings.Trim(name, "-") != name, strings.ContainsAny(name, `*:()"`), strings.ContainsFunc(name, unicode.IsSpace):
		return Field{}, fmt.Errorf("%.100q is no name of a field", name)
	case strings.Count(name, ".") > maxPathDots:
		return Field{}, fmt.Errorf("%q has more than %d dots", name, maxPathDots)
	case name == entryfield.Level, name == entryfield.Environment, name == FieldProject, name == FieldPattern:
		return Field{name: name}, nil
	}
	return Field{name, pathsOf(name)}, nil
}

// String returns its name.
func (f Field) String() string { return f.name }

// Paths are where its values are in an entry's text, names joined by dots, in the
// order in which they count; none where they are not in the text.
func (f Field) Paths() (paths []string) {
	for _, path := range f.paths {
		paths = append(paths, string(path))
	}
	return paths
}

// Value returns the first value of an entry there; "" for none.
func (f Field) Value(entry *Stored, project string) (first string) {
	f.values(entry, project, func(value []byte) bool {
		first = string(value)
		return true
	})
	return first
}

// values calls each with the values of an entry there, until it returns true.
func (f Field) values(entry *Stored, project string, each func(value []byte) bool) {
	switch {
	case f.name == entryfield.Level:
		each([]byte(entry.Level.String()))
	case f.name == entryfield.Environment && entry.Environment == "":
	case f.name == entryfield.Environment:
		each([]byte(entry.Environment))
	case f.name == FieldProject:
		each([]byte(project))
	case f.name == FieldPattern:
		each([]byte(patternText(string(appendMask(nil, entry.message())))))
	default:
		f.scalars(entry, func(value []byte) bool {
			return each(textOf(value))
		})
	}
}

// scalars calls each with the strings, numbers and truth values at the
// first of its paths that has some.
func (f Field) scalars(entry *Stored, each func(value []byte) bool) {
	found := false
	for _, path := range f.paths {
		if found {
			return
		}
		entry.find(path, func(value []byte) bool {
			if value[0] == '{' || value[0] == '[' || string(value) == "null" {
				return false
			}
			found = true
			return each(value)
		})
	}
}

// columns are the paths of the columns that have its values.
func (f Field) columns() []jsonPath {
	switch f.name {
	case entryfield.Level:
		return []jsonPath{levelColumn}
	case entryfield.Environment:
		return []jsonPath{environmentColumn}
	}
	return f.paths
}

func (f Field) reads() Reading {
	switch {
	case f.name == FieldPattern:
		return ReadTexts
	case len(f.paths) > 0:
		return ReadColumns
	case f.name == entryfield.Environment:
		return ReadDirectory
	}
	return 0
}

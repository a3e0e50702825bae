package openapi

import (
	"reflect"
	"slices"
	"strings"
)

// A field is a parameter of a struct for a query or headers.
type field struct {
	name       string
	repeatable bool
}

// fieldsOf returns the parameters of a struct, in its order.
func fieldsOf(parameters any, tag string) (fields []field) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(parameters)) {
		if name := f.Tag.Get(tag); name != "" {
			fields = append(fields, field{name, f.Type.Kind() == reflect.Slice})
		}
	}
	return fields
}

// parametersOf describes the parameters of a struct.
func (s *schemas) parametersOf(parameters any, place string) (described []any) {
	if parameters == nil {
		return nil
	}
	whole := s.request(parameters, place)
	for _, f := range fieldsOf(parameters, place) {
		schema := *whole.Properties[f.name].TypeObject
		parameter := object{"name": f.name, "in": place, "required": slices.Contains(whole.Required, f.name), "schema": &schema}
		if schema.Description != nil {
			parameter["description"], schema.Description = *schema.Description, nil
		}
		if f.repeatable {
			parameter["explode"] = true
		}
		described = append(described, parameter)
	}
	return described
}

// pathParametersOf describes the parameters of a path.
func pathParametersOf(path string) (described []any) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			described = append(described, pathParameter(strings.TrimSuffix(name, "}")))
		}
	}
	return described
}

// pathParameter describes a parameter of a path: it is an id.
func pathParameter(name string) object {
	description := "Id of the " + name
	if name == "id" {
		description = "Its id"
	}
	return object{
		"name": name, "in": "path", "required": true, "description": description,
		"schema": object{"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$"},
	}
}

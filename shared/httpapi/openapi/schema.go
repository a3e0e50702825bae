package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/swaggest/jsonschema-go"
)

const schemaPrefix = "#/components/schemas/"

// schemas makes schemas from Go types. Named types of answers become
// components. Struct tags are the keywords of JSON Schema:
//
//	Title string `json:"title" description:"The first line" maxLength:"200"`
//
// In an answer, a field is required unless it has omitempty or omitzero,
// and a pointer may be null. In a request, a field is required with
// required:"true", and may be null with nullable:"true"; other members are
// refused. What Go does not know of a json.RawMessage is told by type:"object".
type schemas struct {
	prefix     string // of the names of components
	reflector  jsonschema.Reflector
	components object
}

// answer returns the schema of what is encoded.
func (s *schemas) answer(value any) any {
	return s.reflect(value, jsonschema.RootRef, jsonschema.InterceptDefName(s.name), jsonschema.InterceptProp(answerProperty),
		func(rc *jsonschema.ReflectContext) {
			rc.DefinitionsPrefix = schemaPrefix
			rc.CollectDefinitions = func(name string, schema jsonschema.Schema) { s.components[name] = schema }
		})
}

// request returns the schema of what is decoded, from fields with this tag.
func (s *schemas) request(value any, tag string) jsonschema.Schema {
	return s.reflect(value, jsonschema.InlineRefs, jsonschema.InterceptProp(requestProperty), jsonschema.InterceptSchema(closeObject),
		func(rc *jsonschema.ReflectContext) { rc.PropertyNameTag = tag })
}

func (s *schemas) reflect(value any, options ...func(*jsonschema.ReflectContext)) jsonschema.Schema {
	schema, err := s.reflector.Reflect(value, append(options, jsonschema.InterceptSchema(nameInt64))...)
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot describe %T: %v", value, err))
	}
	return schema
}

// name returns the component of a type: GroupingErrorGroup of
// errorGroupBody, GroupingErrorGroupList of List[errorGroupBody].
func (s *schemas) name(t reflect.Type, _ string) string {
	name, argument, generic := strings.Cut(t.Name(), "[")
	if generic {
		argument = strings.TrimSuffix(argument, "]")
		name = bare(argument[strings.LastIndexAny(argument, "./")+1:]) + name
	}
	return s.prefix + bare(name)
}

func bare(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Body"), "JSON")
	return strings.ToUpper(name[:1]) + name[1:]
}

// nameInt64 says which numbers need 64 bits.
func nameInt64(p jsonschema.InterceptSchemaParams) (stop bool, err error) {
	if p.Processed && p.Value.IsValid() && indirect(p.Value.Type()).Kind() == reflect.Int64 {
		p.Schema.WithFormat("int64")
	}
	return false, nil
}

// closeObject refuses the members that an object of a request does not name.
func closeObject(p jsonschema.InterceptSchemaParams) (stop bool, err error) {
	if p.Processed && len(p.Schema.Properties) > 0 && p.Schema.AdditionalProperties == nil {
		p.Schema.WithAdditionalProperties(boolean(false))
	}
	return false, nil
}

func answerProperty(p jsonschema.InterceptPropParams) error {
	if !p.Processed {
		return nil
	}
	tag := p.Field.Tag.Get("json")
	absent := strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero")
	if !absent && !slices.Contains(p.ParentSchema.Required, p.Name) {
		p.ParentSchema.Required = append(p.ParentSchema.Required, p.Name)
	}
	finish(p, !absent && p.Field.Type.Kind() == reflect.Pointer)
	return nil
}

func requestProperty(p jsonschema.InterceptPropParams) error {
	if p.Processed {
		finish(p, false)
	}
	return nil
}

// finish decides whether a property may be null, and gives a list's
// keywords to its items where they are about these.
func finish(p jsonschema.InterceptPropParams, nullable bool) {
	schema := p.PropertySchema
	if tag, given := p.Field.Tag.Lookup("nullable"); given {
		nullable = tag == "true"
	}
	if kind, given := p.Field.Tag.Lookup("type"); given {
		schema.AddType(jsonschema.SimpleType(kind))
	}
	if schema.Items != nil && schema.Items.SchemaOrBool != nil {
		toItems(schema, schema.Items.SchemaOrBool.TypeObject)
	}
	if schema.Ref != nil && nullable {
		reference := jsonschema.Schema{Ref: schema.Ref}
		schema.Ref = nil
		schema.WithAnyOf(reference.ToSchemaOrBool(), jsonschema.Null.ToSchemaOrBool())
		return
	}
	schema.RemoveType(jsonschema.Null)
	if nullable {
		schema.AddType(jsonschema.Null)
		if schema.Enum != nil {
			schema.Enum = append(schema.Enum, nil)
		}
	}
}

// toItems moves the keywords that say nothing about a list.
func toItems(list, items *jsonschema.Schema) {
	if items.Ref != nil {
		return
	}
	items.Enum, list.Enum = list.Enum, nil
	items.Pattern, list.Pattern = list.Pattern, nil
	items.MinLength, list.MinLength = list.MinLength, 0
	items.MaxLength, list.MaxLength = list.MaxLength, nil
	items.Minimum, list.Minimum = list.Minimum, nil
	items.Maximum, list.Maximum = list.Maximum, nil
}

func boolean(value bool) jsonschema.SchemaOrBool { return jsonschema.SchemaOrBool{TypeBoolean: &value} }

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

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

package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiledSchemas keeps the schemas of answers: kin-openapi compiles a
// schema again for each value, which takes longer than most requests.
var compiledSchemas sync.Map

// compare returns how a value differs from a schema without references.
func compare(schema *openapi3.Schema, value any) error {
	known, ok := compiledSchemas.Load(schema)
	if !ok {
		compiled, err := compile(schema)
		if err != nil {
			return err
		}
		known, _ = compiledSchemas.LoadOrStore(schema, compiled)
	}
	return known.(*jsonschema.Schema).Validate(value)
}

func compile(schema *openapi3.Schema) (*jsonschema.Schema, error) {
	const name = "schema.json"
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	described, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	if err := compiler.AddResource(name, described); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// isInt64 checks a format of OpenAPI that JSON Schema lacks.
func isInt64(value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	if _, err := strconv.ParseInt(number.String(), 10, 64); err != nil {
		return fmt.Errorf("%s is no int64", number)
	}
	return nil
}

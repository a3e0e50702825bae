package openapi

import (
	"encoding/json"
	"slices"
)

// Version30 returns a document of OpenAPI 3.1 as one of 3.0, for generators
// that can't read the former. It knows what documents of this package have.
func Version30(document []byte) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(document, &whole); err != nil {
		return nil, err
	}
	whole["openapi"] = "3.0.3"
	return json.Marshal(older(whole))
}

func older(value any) any {
	switch of := value.(type) {
	case []any:
		for i := range of {
			of[i] = older(of[i])
		}
	case map[string]any:
		olderSchema(of)
		_, isContent := of["schema"]
		for name, member := range of {
			if name != "example" || !isContent { // what is sent stays the same
				of[name] = older(member)
			}
		}
	}
	return value
}

// olderSchema rewrites what is null as nullable, and other words that 3.0
// does not know. What is not a schema has none of them.
func olderSchema(schema map[string]any) {
	if isNull(schema["type"]) {
		schema["type"], schema["nullable"] = "string", true
	}
	if kinds, several := schema["type"].([]any); several {
		kinds = slices.DeleteFunc(kinds, isNull)
		schema["type"], schema["nullable"] = kinds[0], true
	}
	if choices, is := schema["anyOf"].([]any); is {
		kept := slices.DeleteFunc(choices, func(one any) bool {
			choice, is := one.(map[string]any)
			return is && isNull(choice["type"])
		})
		if schema["anyOf"] = kept; len(kept) == 1 {
			delete(schema, "anyOf")
			schema["allOf"], schema["nullable"] = kept, true
		}
	}
	if value, is := schema["const"]; is {
		delete(schema, "const")
		schema["enum"] = []any{value}
	}
	if examples, is := schema["examples"].([]any); is {
		delete(schema, "examples")
		schema["example"] = examples[0]
	}
	if reference, is := schema["$ref"]; is && len(schema) > 1 {
		delete(schema, "$ref") // beside which 3.0 reads nothing
		schema["allOf"] = []any{map[string]any{"$ref": reference}}
	}
}

func isNull(kind any) bool { return kind == "null" }

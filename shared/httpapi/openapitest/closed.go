package openapitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxDepth exceeds the levels of any schema that does not contain itself.
const maxDepth = 64

// compositions are the keywords whose parts describe the same object.
var compositions = []string{"allOf", "anyOf", "oneOf"}

// closeAnswers replaces the schemas of all answers by closed ones.
func closeAnswers(root map[string]any) error {
	for _, operations := range object(root["paths"]) {
		for _, operation := range object(operations) {
			if err := closeEach(root, object(object(operation)["responses"])); err != nil {
				return err
			}
		}
	}
	components := object(root["components"])
	if err := closeProblems(root, object(components["schemas"])); err != nil {
		return err
	}
	return closeEach(root, object(components["responses"]))
}

// closeProblems closes the schemas for answers to undescribed requests.
func closeProblems(root, schemas map[string]any) (err error) {
	for name, schema := range schemas {
		if isProblem(name) {
			if schemas[name], err = closed(root, object(schema), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func isProblem(schema string) bool { return strings.HasSuffix(schema, "Problem") }

func closeEach(root, responses map[string]any) error {
	for _, response := range responses {
		for _, media := range object(object(response)["content"]) {
			schema, err := closed(root, object(object(media)["schema"]), 0)
			if err != nil {
				return err
			}
			object(media)["schema"] = schema
		}
	}
	return nil
}

// closed returns a copy of schema, without references, that allows only
// the members it names.
func closed(root, schema map[string]any, depth int) (map[string]any, error) {
	whole, err := inlined(root, schema, depth)
	if err != nil {
		return nil, err
	}
	_, names := whole["properties"]
	_, decides := whole["additionalProperties"]
	composes := slices.ContainsFunc(compositions, func(keyword string) bool { return whole[keyword] != nil })
	if (names || composes) && !decides {
		whole["unevaluatedProperties"] = false
	}
	return whole, nil
}

// inlined returns a copy of schema without references. Its parts are
// closed; it stays open, as it may be part of a composition.
func inlined(root, schema map[string]any, depth int) (_ map[string]any, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a schema holds itself, or is more than %d deep", maxDepth)
	}
	if ref, ok := schema["$ref"].(string); ok {
		target := resolve(root, ref)
		if target == nil {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
		return inlined(root, target, depth+1)
	}
	whole := maps.Clone(schema)
	for keyword, value := range schema {
		if whole[keyword], err = inlineKeyword(root, keyword, value, depth+1); err != nil {
			return nil, err
		}
	}
	return whole, nil
}

// inlineKeyword returns a copy of a keyword's value.
func inlineKeyword(root map[string]any, keyword string, value any, depth int) (_ any, err error) {
	switch inner := value.(type) {
	case map[string]any:
		if keyword == "items" || keyword == "additionalProperties" {
			return closed(root, inner, depth)
		}
		if keyword == "properties" {
			return closeMembers(root, inner, depth)
		}
	case []any:
		if slices.Contains(compositions, keyword) {
			return inlineParts(root, inner, depth)
		}
	}
	return value, nil
}

func closeMembers(root, members map[string]any, depth int) (_ map[string]any, err error) {
	all := map[string]any{}
	for name, schema := range members {
		if all[name], err = closed(root, object(schema), depth); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func inlineParts(root map[string]any, parts []any, depth int) (_ []any, err error) {
	all := make([]any, len(parts))
	for i, part := range parts {
		if all[i], err = inlined(root, object(part), depth); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// resolve returns the target of a reference within the document; nil if
// there is none.
func resolve(root map[string]any, ref string) map[string]any {
	place := root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		place = object(place[name])
	}
	return place
}

// object returns value as a JSON object; nil if it is none.
func object(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}

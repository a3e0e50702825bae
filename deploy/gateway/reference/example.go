package reference

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// WithExamples returns an OpenAPI 3.1 document that has an example of each
// JSON that an operation takes, or answers on success.
func WithExamples(text []byte) ([]byte, error) {
	var read document
	var whole httpapi.OpenAPI
	for _, into := range []any{&read, &whole} {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
		}
	}
	for path, operations := range read.Paths {
		for _, method := range methods {
			described, there := operations[method]
			if !there {
				continue
			}
			shown, err := read.withExamples(described)
			if err != nil {
				return nil, fmt.Errorf("cannot read %s %s of the OpenAPI document: %w", method, path, err)
			}
			operations[method] = shown
		}
		whole.Paths[path] = json.RawMessage(encoded(operations, ""))
	}
	return []byte(encoded(whole, "")), nil
}

// members are those of an object of which some change.
type members = map[string]json.RawMessage

// withExamples returns an operation with examples.
func (d *document) withExamples(operation json.RawMessage) (json.RawMessage, error) {
	return change(operation, func(of members) (err error) {
		if of["requestBody"], err = d.inBody(of["requestBody"]); err != nil {
			return err
		}
		of["responses"], err = change(of["responses"], func(of members) (err error) {
			for status := range of {
				if strings.HasPrefix(status, "2") && err == nil {
					of[status], err = d.inBody(of[status])
				}
			}
			return err
		})
		return err
	})
}

// inBody returns a body, or an answer, with an example of its JSON.
func (d *document) inBody(body json.RawMessage) (json.RawMessage, error) {
	return change(body, func(of members) (err error) {
		of["content"], err = change(of["content"], func(of members) (err error) {
			of[httpapi.TypeJSON], err = change(of[httpapi.TypeJSON], d.addExample)
			return err
		})
		return err
	})
}

func (d *document) addExample(of members) error {
	if of["example"] != nil || of["schema"] == nil {
		return nil
	}
	var s schema
	if err := json.Unmarshal(of["schema"], &s); err != nil {
		return err
	}
	if example := d.sample(s, 0); example != nil {
		of["example"] = json.RawMessage(encoded(example, ""))
	}
	return nil
}

// change changes members of an object; without the object, nothing.
func change(object json.RawMessage, how func(members) error) (json.RawMessage, error) {
	if object == nil {
		return nil, nil
	}
	var of members
	if err := json.Unmarshal(object, &of); err != nil {
		return nil, err
	}
	if err := how(of); err != nil {
		return nil, err
	}
	for name, value := range of {
		if value == nil {
			delete(of, name) // it was not there
		}
	}
	return json.RawMessage(encoded(of, "")), nil
}

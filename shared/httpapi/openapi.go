package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// OpenAPI is the part of an OpenAPI document that joining needs. All
// below stays unchanged.
type OpenAPI struct {
	Version    string                                `json:"openapi"`
	Info       map[string]string                     `json:"info"`
	Servers    []map[string]string                   `json:"servers,omitempty"`
	Paths      map[string]json.RawMessage            `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components,omitempty"` // bounded by the joined documents
	Tags       []json.RawMessage                     `json:"tags,omitempty"`
}

// Add adds a part. It fails if a path or component exists with other content.
func (d *OpenAPI) Add(text []byte) error {
	var part OpenAPI
	if err := json.Unmarshal(text, &part); err != nil {
		return err
	}
	if d.Paths == nil {
		d.Paths = map[string]json.RawMessage{}
	}
	if err := mergeOpenAPI(d.Paths, part.Paths); err != nil {
		return err
	}
	for kind, components := range part.Components {
		if err := d.addComponents(kind, components); err != nil {
			return err
		}
	}
	d.Tags = append(d.Tags, part.Tags...)
	return nil
}

func (d *OpenAPI) addComponents(kind string, components map[string]json.RawMessage) error {
	if d.Components == nil {
		d.Components = map[string]map[string]json.RawMessage{}
	}
	if d.Components[kind] == nil {
		d.Components[kind] = map[string]json.RawMessage{}
	}
	if err := mergeOpenAPI(d.Components[kind], components); err != nil {
		return fmt.Errorf("components/%s: %w", kind, err)
	}
	return nil
}

func mergeOpenAPI(into, from map[string]json.RawMessage) error {
	for name, value := range from {
		if have, twice := into[name]; twice && !sameJSON(have, value) {
			return fmt.Errorf("%q is described twice, differently", name)
		}
		into[name] = value
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

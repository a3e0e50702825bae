package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// openAPIPath is where each module serves its own part, and the gateway the whole.
const openAPIPath = "/v1/openapi.json"

// A document is as much of an OpenAPI document as joining needs. Everything below stays as its module wrote it.
type document struct {
	OpenAPI    string                                `json:"openapi"`
	Info       map[string]string                     `json:"info"`
	Servers    []map[string]string                   `json:"servers,omitempty"`
	Paths      map[string]json.RawMessage            `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components,omitempty"`
	Tags       []json.RawMessage                     `json:"tags,omitempty"`
}

// joinOpenAPI asks every module for its part and makes one document of them.
func (g *Gateway) joinOpenAPI(ctx context.Context) ([]byte, error) {
	whole := document{
		OpenAPI:    "3.1.0",
		Info:       map[string]string{"title": "Weir", "version": "1"},
		Servers:    []map[string]string{{"url": "/"}},
		Paths:      map[string]json.RawMessage{},
		Components: map[string]map[string]json.RawMessage{},
	}
	for _, module := range slices.Sorted(maps.Keys(g.backends)) {
		text, err := g.backends[module].ask(ctx, openAPIPath)
		if err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI part of %s: %w", module, err)
		}
		if err := whole.add(text); err != nil {
			return nil, fmt.Errorf("cannot join the OpenAPI part of %s: %w", module, err)
		}
	}
	return json.Marshal(whole)
}

// add joins a module's part. The same path or component twice with different content is a mistake of the modules.
func (d *document) add(text []byte) error {
	var part document
	if err := json.Unmarshal(text, &part); err != nil {
		return err
	}
	if err := merge(d.Paths, part.Paths); err != nil {
		return err
	}
	for kind, components := range part.Components {
		if d.Components[kind] == nil {
			d.Components[kind] = map[string]json.RawMessage{}
		}
		if err := merge(d.Components[kind], components); err != nil {
			return fmt.Errorf("components/%s: %w", kind, err)
		}
	}
	d.Tags = append(d.Tags, part.Tags...)
	return nil
}

func merge(into, from map[string]json.RawMessage) error {
	for name, value := range from {
		if have, twice := into[name]; twice && !sameJSON(have, value) {
			return fmt.Errorf("%q is said twice, in different words", name)
		}
		into[name] = value
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

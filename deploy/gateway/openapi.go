package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weirlog/weir/shared/httpapi"
)

// openAPIPath is where each module serves its own part, and the gateway the whole.
const openAPIPath = "/v1/openapi.json"

// joinOpenAPI joins all modules' parts in one document.
func (g *Gateway) joinOpenAPI(ctx context.Context) ([]byte, error) {
	whole := httpapi.OpenAPI{
		Version: "3.1.0", Info: map[string]string{"title": "Weir", "version": "1"}, Servers: []map[string]string{{"url": "/"}},
	}
	for _, module := range slices.Sorted(maps.Keys(g.backends)) {
		text, err := g.backends[module].ask(ctx, openAPIPath)
		if err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI part of %s: %w", module, err)
		}
		if err := whole.Add(text); err != nil {
			return nil, fmt.Errorf("cannot join the OpenAPI part of %s: %w", module, err)
		}
	}
	return json.Marshal(whole)
}

package groupingtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// LargeMap is a source map of about 20 MB with two million segments, such as
// that of an application of 4,600 files, with their text.
func LargeMap() []byte {
	sources, contents, names := make([]string, 4600), make([]string, 4600), make([]string, 60_000)
	for i := range sources {
		sources[i] = fmt.Sprintf("webpack://shop/./src/m%d/file%d.ts", i%50, i)
		contents[i] = strings.Repeat("export function total(cart: Cart): number { return sum(cart.items); }\n", 29)
	}
	for i := range names {
		names[i] = fmt.Sprint("name", i)
	}
	segments := []string{"EAAE", "IAAIC", "GAAG", "KACP", "OAAK", "EAAID", "CAAC"}
	var mappings strings.Builder
	for line := range 100 {
		if line > 0 {
			mappings.WriteString(";ACAA,")
		}
		for i := range 20_000 {
			mappings.WriteString(segments[(i*7+line)%len(segments)] + ",")
		}
	}
	text, err := json.Marshal(map[string]any{"version": 3, "sources": sources, "sourcesContent": contents, "names": names, "mappings": mappings.String()})
	if err != nil {
		panic("BUG: cannot encode a source map: " + err.Error())
	}
	return text
}

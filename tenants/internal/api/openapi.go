package api

import (
	_ "embed"
	"fmt"

	"github.com/weirlog/weir/shared/httpapi"
)

// openAPI is the common part of the rooms' descriptions.
//
//go:embed openapi.json
var openAPI []byte

// Describe joins the rooms' parts of the description.
func Describe(rooms ...[]byte) []byte {
	text, err := httpapi.JoinOpenAPI(openAPI, rooms...)
	if err != nil {
		panic(fmt.Sprintf("BUG: the embedded OpenAPI parts don't fit together: %v", err))
	}
	return text
}

package api

import _ "embed"

// openAPI is this module's part of the description of the whole API.
//
//go:embed openapi.json
var openAPI []byte

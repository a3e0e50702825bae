// Package openapi mounts routes and describes them in OpenAPI 3.1, both
// from one table of operations. The schemas of bodies and parameters come
// from the Go types that handlers decode and encode:
//
//	Title string `json:"title" description:"The first line" maxLength:"200"`
//
// The tags are the keywords of JSON Schema. In an answer, a field is
// required unless it has omitempty or omitzero, and a pointer may be null.
// In a request, a field is required with required:"true", and may be null
// with nullable:"true"; other members are refused. What Go does not know of
// a json.RawMessage is told by type:"object".
package openapi

// Package openapi mounts routes and describes them in OpenAPI 3.1, both
// from one table of operations, with schemas from the Go types of bodies
// and parameters. It knows no module, and reads and stores nothing.
package openapi

// Package gateway joins the modules' HTTP APIs in one origin: it routes
// each path to the module that owns its noun, in the same process or
// over HTTPS, and joins their readiness and OpenAPI documents.
// Authentication, limits and validation stay with the modules, so a
// request means the same with and without the gateway.
package gateway

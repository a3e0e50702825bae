// Package gateway makes one origin of the modules' HTTP APIs: it routes each path to the module that owns its noun,
// in the same process or over HTTPS, and joins what all of them say of themselves (readiness, OpenAPI).
//
// It decides nothing else. Authentication, limits and validation are the modules' own, so a request that reaches a
// module past the gateway is treated the same.
package gateway

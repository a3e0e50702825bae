// Package gateway makes one origin of the modules' HTTP APIs: it routes each path to the module that owns its noun,
// in the same process or over HTTPS, and joins their readiness and their OpenAPI documents.
//
// It decides nothing else. Authentication, limits and validation are the modules' own, so a request that reaches a
// module past the gateway is treated the same.
package gateway

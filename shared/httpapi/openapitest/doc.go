// Package openapitest checks requests and responses of a module's
// tests against the OpenAPI document that the module serves. It is
// for tests alone and depends on no module.
package openapitest

// Package openapitest checks requests and responses of a module's tests
// against the OpenAPI document that the module serves. Only tests
// import it, and it depends on no module.
package openapitest

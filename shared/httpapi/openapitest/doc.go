// Package openapitest checks requests and answers of a module's tests against the OpenAPI document that the module serves. It is
// for tests alone, and knows of no module.
package openapitest

// Package apireference lists the operations of the API from the OpenAPI
// documents of the modules.
package apireference

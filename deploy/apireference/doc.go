// Package apireference lists the operations of the API from the OpenAPI
// documents of the modules. It starts no module.
package apireference

// Package apireference lists the operations of the API from the OpenAPI
// parts that the modules serve. It reads only source files.
package apireference

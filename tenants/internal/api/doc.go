// Package api is what the API of all rooms is made with: who asks, changes, lists, problems, and the OpenAPI description of the module. It
// may touch requests and responses, but no table and no event.
package api

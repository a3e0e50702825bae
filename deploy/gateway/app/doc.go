// Package app is the gateway as a separate process. It has its settings
// and its wiring, and no routes.
package app

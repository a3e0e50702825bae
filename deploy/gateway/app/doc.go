// Package app is the gateway as a process of its own. It has its
// settings and its wiring, and no routes.
package app

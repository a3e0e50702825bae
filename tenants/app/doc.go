// Package app wires tenants into one process. It holds settings, start-up
// order and which room uses which, and decides nothing about organizations.
package app

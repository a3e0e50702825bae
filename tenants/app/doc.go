// Package app wires tenants into one process. It holds settings,
// start-up order and which room serves what to another, and
// decides nothing about organizations.
package app

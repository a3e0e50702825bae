// Package registry is the room of organizations, their projects, service tokens
// and security policies: their rules, tables, API and pages. It may touch their
// tables; what it needs of members is given to it.
package registry

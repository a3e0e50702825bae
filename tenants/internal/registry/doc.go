// Package registry is the room of organizations, their projects, service tokens and security policies: what decides about them,
// keeps, serves and shows them. It may touch their tables, and what others tell it of members.
package registry

// Package registry is the room of organizations, their projects,
// service tokens and security policies: rules, tables, API and
// pages. It may touch their tables; members are given to it.
package registry

// Package query reads the projections as one organization, or as
// tenants.Installation. It has no table of its own: the rooms' stores use it.
package query

// Package query reads the projections as one organization, or as
// tenants.Installation. It has no table: the stores of the rooms stand on it.
package query

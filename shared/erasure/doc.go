// Package erasure removes the data of a deleted organization or project
// from a module's schema, in bounded transactions that any replica
// continues, and publishes what was removed. It may use the table
// erasures and the tables that a module names.
package erasure

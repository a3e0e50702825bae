// Package entries makes log entries as the services of a shop write them: access
// lines, slow queries, retries, failures in the seven languages whose stack
// traces Weir parses. Whatever sends or stores load gets its entries here, so
// that figures of one benchmark hold for another.
package entries

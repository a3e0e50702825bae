// Package usage lists an organization's requests by outcome and explains
// refusals. It stands on snapshot and the tables.
package usage

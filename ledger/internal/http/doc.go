// Package http maps HTTP to the services: balances, transfers and usage of an
// organization, and the ledger's part of the OpenAPI document. It reads no
// table and decides only who has access.
package http

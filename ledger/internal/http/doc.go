// Package http translates between HTTP and the service: balances, transfers and
// usage of an organization, and the ledger's part of the OpenAPI document. It
// reads no table and decides nothing but who may ask.
package http

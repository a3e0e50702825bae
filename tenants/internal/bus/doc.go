// Package bus connects tenants to the other modules: it publishes credentials
// and facts, and follows credentials, accounts and the use of keys. It alone
// maps between the domain and shared/contract.
package bus

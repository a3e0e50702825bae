// Package bus connects tenants to the other modules: it publishes
// credentials and facts, and consumes credentials, accounts and uses
// of keys. It alone maps between the domain and shared/contract.
package bus

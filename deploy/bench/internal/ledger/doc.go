// Package ledger measures the ledger alone, beside the limit of the same
// PostgreSQL: from records in Kafka to committed books, at full and at half
// load, for readers, and from nothing. It uses the ledger as any program
// does, by its app, its topics and its routes.
package ledger

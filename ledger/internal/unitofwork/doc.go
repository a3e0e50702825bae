// Package unitofwork is the one way by which the ledger decides: in one
// transaction, under the lock of an organization's books, it opens them, books
// what is decided, saves them, keeps the decision and its answer, and hands
// its events on. It stands on the tables.
package unitofwork

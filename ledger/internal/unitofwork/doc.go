// Package unitofwork is the only way to decide: in one transaction, under the
// lock of an organization's books, it opens them, books the decision, saves
// books, decision and answer, and publishes the events. It stands on the tables.
package unitofwork

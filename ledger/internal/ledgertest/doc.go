// Package ledgertest is a ledger on a fresh database, without a
// broker. Only tests import it.
package ledgertest

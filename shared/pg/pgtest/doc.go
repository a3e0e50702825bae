// Package pgtest gives a test a database with the tables that it
// needs. Only tests import it.
package pgtest

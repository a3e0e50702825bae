// Package docstest reads the commands of pages, for tests that run
// them. Only tests of deploy import it.
package docstest

// Package mailtest is a mail server for tests. Only tests import it.
package mailtest

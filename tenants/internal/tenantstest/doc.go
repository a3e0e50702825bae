// Package tenantstest is what the tests of several rooms stand on. Only tests import it.
package tenantstest

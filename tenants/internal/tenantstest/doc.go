// Package tenantstest is what the tests of several rooms share.
// Only tests import it.
package tenantstest

// Package routetest fails the tests of a package that mounts routes without
// trying each of them. Only tests import it, and it depends on no module.
package routetest

// Package routetest fails the tests of a package that, once all have run, left
// out a route that it mounts, or what another check finds. Only tests import
// it, and it depends on no module.
package routetest

// Package routetest fails the tests of a package that mounts routes
// and doesn't try each of them. It is for tests alone and depends on no module.
package routetest

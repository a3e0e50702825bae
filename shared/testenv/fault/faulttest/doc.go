// Package faulttest injects faults into a server and checks their effects.
// Only the tests of the packages that provide such servers import it.
package faulttest

// Package faulttest does faults to a server and looks for their effects. Only
// the tests of the packages that give such servers import it.
package faulttest

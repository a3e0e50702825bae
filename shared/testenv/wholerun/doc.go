// Package wholerun runs a package's tests, and checks, if all of them
// ran, what only all of them show. It depends on nothing.
package wholerun

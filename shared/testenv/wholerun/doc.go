// Package wholerun runs a package's tests, and says whether they were all
// that it has: what only all of them show can be checked then. It depends on
// nothing.
package wholerun

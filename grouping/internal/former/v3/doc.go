// Package v3 holds the third version of the algorithm that fingerprints errors
// (see package former). Nothing here ever changes.
package v3

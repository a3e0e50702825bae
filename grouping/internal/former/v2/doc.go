// Package v2 holds the first two versions of the algorithm that fingerprints
// errors (see package former). Nothing here ever changes.
package v2

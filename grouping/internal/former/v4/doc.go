// Package v4 holds the fourth version of the algorithm that fingerprints errors
// (see package former). Nothing here ever changes.
package v4

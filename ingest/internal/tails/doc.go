// Package tails passes entries that were just accepted to those who watch
// them. It bounds how many watch, what is compared for each organization
// and what waits for each viewer; what is left out is counted.
package tails

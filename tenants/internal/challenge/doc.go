// Package challenge stores challenges of browsers until they are answered,
// once, or expire. It may touch the table of challenges and nothing else.
package challenge

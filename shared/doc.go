// Package shared is the base of every module of Weir. It holds no code
// itself, but folders, each a noun that at least two modules need.
package shared

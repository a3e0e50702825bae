// Package shared is what every module of Weir stands on. It holds no code of
// its own, but folders, each a noun that at least two modules need.
package shared

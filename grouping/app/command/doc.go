// Package command is what the program grouping can do: serve, and show how it would group errors that it is given. It stands on app and
// the domain, and decides nothing.
package command

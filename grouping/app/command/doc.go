// Package command holds the commands of the program grouping:
// serve, and show how given errors would be grouped. It stands on
// app and the domain, and decides nothing.
package command

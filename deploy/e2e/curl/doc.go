// Command curl replaces curl in the test of the printed commands, on a
// machine without it. It has only the flags of those commands.
package main

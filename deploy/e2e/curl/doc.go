// Command curl replaces curl in the test of the printed commands, on a machine
// without it. It has the flags that those commands use, and no others.
package main

// Command images builds every program and makes a container image of each,
// as files. It is what `make images` runs.
package main

// Command weir is all of Weir in one process, with a load
// generator and the benchmarks for it. It reads flags and
// environment; the work is in the packages of deploy.
package main

// Package serve makes a test program a server in a process of its own.
// Only the packages of testenv that provide servers import it.
package serve

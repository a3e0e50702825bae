// Package serve makes a test program a server, so that one has a process of its
// own. Only the packages of testenv that give servers import it.
package serve

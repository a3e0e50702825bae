// Package docker starts containers of a test's own, by the command docker.
// Only the packages of testenv that provide servers with faults import it.
package docker

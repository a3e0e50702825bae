// Package backend knows which servers a run of tests uses, logs them, runs
// containers of a test's own, and holds what tests share. Only the packages
// of testenv that provide servers import it.
package backend

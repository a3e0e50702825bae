// Package backend knows which servers a run of tests uses, logs them, and
// holds what tests share. Only the packages
// of testenv that provide servers import it.
package backend

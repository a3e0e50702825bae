// Package backend knows which servers a run of tests uses, and logs
// them. Only the packages of testenv that provide servers import it.
package backend

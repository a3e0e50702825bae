// Package backend knows which servers a run of tests takes, and announces them.
// Only the packages of testenv that give servers import it.
package backend

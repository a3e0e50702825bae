// Package challenge keeps what browsers were asked to prove
// until they answer, once, or the time for it is over. It may
// touch the table of challenges and nothing else.
package challenge

// Package fairshare shares what is scarce among keys, such as organizations
// or client networks. Bucket and Table limit a rate; Limiter limits what is
// held at once, such as searches or memory. All is in memory and bounded.
package fairshare

// Package fairshare shares what is scarce among keys, such as organizations
// or client networks: Bucket and Table limit a rate, Limiter limits what is
// held at once, such as searches or memory, and Ranking finds who holds
// most. It works in bounded memory and does not depend on what keys are.
package fairshare

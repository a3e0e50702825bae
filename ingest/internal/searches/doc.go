// Package searches lets organizations search side by side: each has its share of the slots, of the queue for them and of the memory for
// responses. It holds that in memory and runs no query itself.
package searches

// Package searches lets organizations search side by side: each has its share of the slots, their
// queue and the memory of answers. It holds that in memory and runs no query itself.
package searches

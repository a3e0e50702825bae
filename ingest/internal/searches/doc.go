// Package searches keeps a search to what its caller may read, and
// organizations side by side: each has its share of the slots, their queue and
// the memory of answers. It runs no query itself.
package searches

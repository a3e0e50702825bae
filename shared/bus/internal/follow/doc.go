// Package follow reads partitions of a topic from given positions, after whoever leads them. What is done with the records is its caller's.
package follow

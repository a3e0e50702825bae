// Package erasure removes from a module's schema what belongs to a deleted organization or project, in bounded transactions that any
// replica goes on with, and publishes what was removed. It may touch the table erasures and what a module names as its tables.
package erasure

// Package atomicfile replaces a file so that, also after a power cut, the
// old or the new one is there whole. It writes that file, one beside it
// whose name ends in .new, and their folder.
package atomicfile

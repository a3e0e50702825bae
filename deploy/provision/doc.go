// Package provision makes the secrets of an installation in a directory: one
// file for each, which its containers mount. What is there already stays, so
// that nothing changes under what runs. It touches nothing but that directory.
package provision

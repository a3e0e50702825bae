// Package provision makes the secrets of an installation in a directory: one
// file for each, which its containers mount. It touches nothing but that
// directory, and leaves what is there already, so that nothing changes under
// what runs.
package provision

// Package provision creates the secrets of an installation in a
// directory: one file for each, which its containers mount. It touches
// only that directory, and keeps existing files, so that nothing
// changes for running services.
package provision

// Package ui is the console's shell: one layout, one stylesheet, the components that pages are made of, and the headers
// that protect them. Each module has its own pages, in its internal/console, and renders them with Pages.
//
// The pages work without scripts, and none is ever allowed: everything that people can do is a link or a form.
package ui

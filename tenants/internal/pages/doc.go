// Package pages is what the rooms' pages share:
// layout, navigation, forms, permissions. It may read
// the session of a request, but no table and no event.
package pages

// Package pages is what the pages of all rooms are made with: layout, navigation, forms, whom a page is for. It may touch the session of a
// request, but no table and no event.
package pages

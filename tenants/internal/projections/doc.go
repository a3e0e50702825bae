// Package projections joins the projections of all rooms: which
// table shows which event. It may import every room, and nothing
// imports it but app and tests.
package projections

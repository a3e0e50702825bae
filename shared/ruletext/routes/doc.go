// Package routes has the routes of the rules of a project: those of the API, and the page
// of the console. A module says what its rules are about, and who may change them.
package routes

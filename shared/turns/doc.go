// Package turns gives organizations turns at a few places of a module,
// such as those that read its database: one that asks without pause has
// its share of the places and a bounded line, and others do not wait
// behind it. It opens no connection and queries nothing itself.
package turns

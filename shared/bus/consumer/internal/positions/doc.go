// Package positions keeps the positions of a consumer group and its
// lanes in a topic, in the tables of bus.Migrations. It does not know
// the records' effect.
package positions

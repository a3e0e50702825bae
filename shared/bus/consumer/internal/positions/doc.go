// Package positions keeps where a consumer group stands in a topic, and its
// lanes, in the tables of bus.Migrations. It does not know what is applied.
package positions

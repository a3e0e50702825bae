// Package watermillbus is for Watermill programs: a Subscriber and a Router for
// handlers that are called message by message, at least once. No module of Weir
// runs on it; writers to Postgres use consumer. Programs beside Weir that follow
// its topics do, and by it Watermill's conformance suite tests what publishes
// and reads underneath.
package watermillbus

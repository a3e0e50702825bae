// Package watermillbus is for Watermill programs beside Weir that
// follow its topics: a Subscriber and a Router for handlers that are
// called message by message, at least once. No module of Weir runs on
// it; Watermill's conformance suite uses it to test the publisher and
// the readers below.
package watermillbus

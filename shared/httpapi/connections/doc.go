// Package connections holds the connections of a server within limits: so many in all, so many of one client network, and
// fewer that have said nothing yet. Where there is no room, the network that holds most gives way, with its oldest idle
// connection first; a connection in the middle of a request stays. Readers that take nothing are closed.
package connections

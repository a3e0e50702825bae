// Package connections limits the connections of a server: in all, of
// one client network, and of those that have sent nothing yet; to make
// room, the network with most loses its oldest idle one. It touches
// connections, and no request: one within a request stays.
package connections

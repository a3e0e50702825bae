// Package connections limits the connections of a server: in all, of one
// client network, and of those that have sent nothing yet; where there is no
// room, the network that holds most loses its oldest idle one. It touches
// connections, and no request: one in the middle of a request stays.
package connections

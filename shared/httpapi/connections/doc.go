// Package connections limits the connections of a server: in all, of one
// client network, and of those that have sent nothing yet. Where there is no
// room, the network that holds most loses its oldest idle connection; a
// connection in the middle of a request stays, and readers that take nothing
// are closed. It touches connections, and no request.
package connections

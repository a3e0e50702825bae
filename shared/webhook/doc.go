// Package webhook sends messages to the endpoints of others by the convention
// of Standard Webhooks: how they are signed, which addresses may be reached,
// when they are sent again. It may open connections to anybody on the public
// network; it keeps nothing, and knows no event.
package webhook

// Package webhook sends messages to foreign endpoints by the convention
// of Standard Webhooks: how they are signed, which addresses may be
// reached, when they are sent again. It may open connections to the
// whole public network; it stores nothing, and knows no event.
package webhook

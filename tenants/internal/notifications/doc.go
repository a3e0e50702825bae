// Package notifications is the room of what organizations are
// sent when something happens: webhooks, their deliveries,
// and mail to those who pay. It may call any public address
// of a webhook, by internal/webhook alone, and the mail server.
package notifications

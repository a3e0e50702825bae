// Package notifications is the room of what organizations are sent when
// something happens: their webhooks, the deliveries to these, and mail to those
// who pay. It may reach whatever public address a webhook has, by
// shared/webhook alone, and the mail server.
package notifications

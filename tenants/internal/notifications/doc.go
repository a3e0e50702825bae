// Package notifications is the room of what organizations are sent when something happens: their webhooks, and the deliveries that go to
// these. It may reach whatever public address a webhook has, by shared/webhook alone.
package notifications

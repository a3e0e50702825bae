package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// A Subscription is an organization's current subscription.
type Subscription struct {
	Tier          string `json:"tier"`
	RetentionDays int    `json:"retention_days"`
}

// Subscription reads an organization's subscription; token needs
// the scope billing:read.
func (c *Client) Subscription(ctx context.Context, token, organization string) (Subscription, error) {
	return call[Subscription](ctx, c, Request{Method: http.MethodGet, Path: subscriptionOf(organization), Header: bearer(token)})
}

// Subscribe changes an organization's tier: at once to a larger one, at
// the period's end to a smaller one. token needs the scope billing:write.
func (c *Client) Subscribe(ctx context.Context, token, organization, tier string) (Subscription, error) {
	body, err := json.Marshal(map[string]string{"tier": tier})
	if err != nil {
		return Subscription{}, err
	}
	header := bearer(token)
	header["Content-Type"] = "application/json"
	return call[Subscription](ctx, c, Request{Method: http.MethodPut, Path: subscriptionOf(organization), Header: header, Body: body})
}

func subscriptionOf(organization string) string {
	return "/organizations/" + url.PathEscape(organization) + "/subscription"
}

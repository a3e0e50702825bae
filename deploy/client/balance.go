package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Balance is an organization's account with the ledger, in bytes.
type Balance struct {
	Organization string `json:"organization"`
	Tier         string `json:"tier"`
	Period       struct {
		Start time.Time `json:"start"`
		End   time.Time `json:"end"`
	} `json:"period"`
	Granted   int64  `json:"granted"`
	Consumed  int64  `json:"consumed"`
	Overage   int64  `json:"overage"`
	Overshoot int64  `json:"overshoot"`
	Remaining int64  `json:"remaining"`
	State     string `json:"state"`
}

// Accepted returns all bytes that were booked in the period.
func (b Balance) Accepted() int64 { return b.Consumed + b.Overage + b.Overshoot }

// Balance reads an organization's balance; token needs the scope billing:read.
func (c *Client) Balance(ctx context.Context, token, organization string) (Balance, error) {
	path := "/organizations/" + url.PathEscape(organization) + "/balance"
	return call[Balance](ctx, c, Request{Method: http.MethodGet, Path: path, Header: bearer(token)})
}

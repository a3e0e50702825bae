package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// An Organization is a tenant.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Tier      string    `json:"tier"`
	CreatedAt time.Time `json:"created_at"`
}

// CreateOrganization takes an operator's token.
func (c *Client) CreateOrganization(ctx context.Context, token, name, tier string) (Organization, error) {
	return post[Organization](ctx, c, "/organizations", bearer(token), map[string]string{"name": name, "tier": tier})
}

// Organization reads an organization that token may access; a Problem
// with the status 404 means that there is none.
func (c *Client) Organization(ctx context.Context, token, organization string) (Organization, error) {
	return call[Organization](ctx, c, Request{Method: http.MethodGet, Path: "/organizations/" + url.PathEscape(organization), Header: bearer(token)})
}

// DeleteOrganization deletes an organization with all its data. It
// takes an operator's token.
func (c *Client) DeleteOrganization(ctx context.Context, token, organization string) error {
	_, err := call[struct{}](ctx, c, Request{Method: http.MethodDelete, Path: "/organizations/" + url.PathEscape(organization), Header: bearer(token)})
	return err
}

// A Project belongs to an organization.
type Project struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

// CreateProject creates a project of organization.
func (c *Client) CreateProject(ctx context.Context, token, organization, name string) (Project, error) {
	return post[Project](ctx, c, "/projects", bearer(token), map[string]string{"organization": organization, "name": name})
}

// An APIKey lets clients post; only the answer to its creation has Key.
type APIKey struct {
	ID           string    `json:"id"`
	Key          string    `json:"key"`
	Prefix       string    `json:"prefix"`
	Last4        string    `json:"last4"`
	Project      string    `json:"project"`
	Organization string    `json:"organization"`
	Environment  string    `json:"environment"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

// CreateAPIKey creates a key of project for environment.
func (c *Client) CreateAPIKey(ctx context.Context, token, project, environment, name string) (APIKey, error) {
	return post[APIKey](ctx, c, "/api-keys", bearer(token),
		map[string]string{"project": project, "environment": environment, "name": name})
}

// RevokeAPIKey revokes a key.
func (c *Client) RevokeAPIKey(ctx context.Context, token, id, reason string) error {
	_, err := post[APIKey](ctx, c, "/api-keys/"+url.PathEscape(id)+"/revoke", bearer(token), map[string]string{"reason": reason})
	return err
}

// A ServiceToken lets a service act for an organization; only the
// answer to its creation has Token.
type ServiceToken struct {
	ID           string   `json:"id"`
	Token        string   `json:"token"`
	Organization string   `json:"organization"`
	Scopes       []string `json:"scopes"`
}

// CreateServiceToken creates a token of organization with scopes.
func (c *Client) CreateServiceToken(ctx context.Context, token, organization, name string, scopes ...string) (ServiceToken, error) {
	return post[ServiceToken](ctx, c, "/service-tokens", bearer(token),
		map[string]any{"organization": organization, "name": name, "scopes": scopes})
}

// A NewMember is a person who may sign in.
type NewMember struct {
	Organization string `json:"organization"`
	Email        string `json:"email"`
	Name         string `json:"name"`
	Role         string `json:"role"`
	Password     string `json:"password"`
}

// CreateMember lets a person sign in to the console.
func (c *Client) CreateMember(ctx context.Context, token string, member NewMember) error {
	_, err := post[struct{}](ctx, c, "/members", bearer(token), member)
	return err
}

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

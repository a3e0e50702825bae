package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

const (
	answerTimeout = 10 * time.Second // for one answer of the provider
	retryDelay    = 2 * time.Second  // after a failed answer: its waiters must not wait again, one after the other
)

// Why a sign-in by a provider fails.
var (
	ErrRefused     = errors.New("the identity provider's answer was not accepted")
	ErrUnavailable = errors.New("the identity provider can't be reached")
)

// Config is a provider.
type Config struct {
	Issuer       string // as in the provider's tokens
	ClientID     string
	ClientSecret httpapi.Secret
	Name         string // for people, such as Okta
	Redirect     string // address to which it sends people back
	Clock        func() time.Time
}

// A Provider identifies people. Its configuration is fetched on
// first use, and again until it answers: a provider that is down
// does not stop other ways to sign in. Safe for concurrent use.
type Provider struct {
	Config
	client *http.Client

	asking chan struct{}  // a semaphore of one
	known  *oidc.Provider // nil: has not answered yet
	failed error          // why it did not answer last
	tried  time.Time
}

// New returns a provider, without calling it.
func New(config Config) *Provider {
	return &Provider{Config: config, client: &http.Client{Timeout: answerTimeout}, asking: make(chan struct{}, 1)}
}

// Values derived from a ticket, so that none is
// stored, and none can be made without the ticket.
func state(ticket tenants.Secret) string    { return ticket.Next("oidc state").Reveal() }
func nonce(ticket tenants.Secret) string    { return ticket.Next("oidc nonce").Reveal() }
func verifier(ticket tenants.Secret) string { return ticket.Next("oidc verifier").Reveal() }

// Start is the address at which the holder of a ticket
// signs in to the provider. It fails with ErrUnavailable.
func (p *Provider) Start(ctx context.Context, ticket tenants.Secret) (string, error) {
	flow, err := p.flow(ctx)
	if err != nil {
		return "", err
	}
	return flow.AuthCodeURL(state(ticket), oidc.Nonce(nonce(ticket)), oauth2.S256ChallengeOption(verifier(ticket))), nil
}

// StateMatches reports whether the returned state is that of the ticket.
func StateMatches(ticket tenants.Secret, returned string) bool {
	return subtle.ConstantTimeCompare([]byte(state(ticket)), []byte(returned)) == 1
}

// Claims are what the provider asserts about a person.
type Claims struct {
	Identity tenants.ProviderIdentity
	Email    string // verified by the provider; empty: none is
}

// Finish returns the claims about the holder of a ticket, whom the provider
// sent back with a code. It fails with ErrRefused or ErrUnavailable.
func (p *Provider) Finish(ctx context.Context, ticket tenants.Secret, code string) (Claims, error) {
	flow, err := p.flow(ctx)
	if err != nil {
		return Claims{}, err
	}
	tokens, err := flow.Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier(ticket)))
	if err != nil {
		return Claims{}, exchangeError(err)
	}
	text, _ := tokens.Extra("id_token").(string)
	verified, err := p.verify(ctx, text)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce(ticket))) != 1 {
		return Claims{}, fmt.Errorf("%w: it is for another sign-in", ErrRefused)
	}
	return p.claims(verified)
}

// exchangeError distinguishes a refusal from an outage.
func exchangeError(err error) error {
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.Response.StatusCode < http.StatusInternalServerError {
		return fmt.Errorf("%w: it answers %d %s", ErrRefused, refusal.Response.StatusCode, refusal.ErrorCode)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// verify checks a token's issuer, audience and time. One
// with several audiences must name us as authorized party.
func (p *Provider) verify(ctx context.Context, text string) (*oidc.IDToken, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	token, err := known.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.Clock}).Verify(ctx, text)
	if err != nil {
		return nil, err
	}
	var claims struct {
		AuthorizedParty string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return nil, err
	}
	others := slices.ContainsFunc(token.Audience, func(a string) bool { return a != p.ClientID })
	if claims.AuthorizedParty != p.ClientID && (others || claims.AuthorizedParty != "") {
		return nil, errors.New("the token is for another client")
	}
	return token, nil
}

func (p *Provider) claims(token *oidc.IDToken) (claims Claims, err error) {
	var email struct {
		Address  string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := token.Claims(&email); err != nil {
		return claims, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if token.Subject == "" || len(token.Subject) > tenants.MaxSubject {
		return claims, fmt.Errorf("%w: it calls somebody by %d characters", ErrRefused, len(token.Subject))
	}
	claims.Identity = tenants.ProviderIdentity{Issuer: p.Issuer, Subject: token.Subject}
	if email.Verified {
		claims.Email = email.Address
	}
	return claims, nil
}

func (p *Provider) flow(ctx context.Context) (*oauth2.Config, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret.Reveal(), Endpoint: known.Endpoint(), RedirectURL: p.Redirect,
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}, nil
}

// discover fetches the provider's addresses and keys, once.
// Concurrent callers wait for that, as long as ctx lasts.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	if p.known == nil && (p.failed == nil || p.Clock().Sub(p.tried) >= retryDelay) {
		p.ask(ctx)
	}
	if p.known == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, p.failed)
	}
	return p.known, nil
}

// ask continues without its caller: others wait for the answer.
func (p *Provider) ask(ctx context.Context) {
	p.known, p.failed = oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
	p.tried = p.Clock()
}

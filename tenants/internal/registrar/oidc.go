package registrar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/oidc"
)

const forProvider = "sign in by an identity provider"

// providerLasts is how long somebody has to sign in at the identity provider.
const providerLasts = 10 * time.Minute

// ErrStranger says that nobody here has the e-mail address that an identity provider has verified.
var ErrStranger = errors.New("no member has this address")

// SignInAtProvider begins a sign-in at the identity provider, after which its holder wants to go to a page. It returns
// the address to go to.
func (r *Registrar) SignInAtProvider(ctx context.Context, to string) (address string, ticket tenants.Secret, err error) {
	data, err := json.Marshal(to)
	if err != nil {
		return "", ticket, err
	}
	if ticket, err = r.ask(ctx, forProvider, "", data, providerLasts); err != nil {
		return "", ticket, err
	}
	address, err = r.Provider.Start(ctx, ticket)
	return address, ticket, err
}

// SignInByProvider starts a session for the member whose e-mail address the identity provider has verified, and returns
// where they wanted to go. It fails with ErrChallenge, ErrStranger, or an error of package oidc.
func (r *Registrar) SignInByProvider(ctx context.Context, request Request, ticket, state, code string) (
	to string, session tenants.Session, secret tenants.Secret, err error) {
	known, err := tenants.ParseSecret(ticketPrefix, ticket)
	if err != nil || !oidc.Began(known, state) {
		return "", session, secret, ErrChallenge
	}
	if to, err = r.wanted(ctx, ticket); err != nil {
		return "", session, secret, err
	}
	member, err := r.verified(ctx, known, code)
	if err != nil {
		return "", session, secret, err
	}
	session, secret, err = r.startSession(ctx, request.by(member), member, tenants.ByOIDC)
	if errors.Is(err, ErrSignIn) { // is no member any more
		err = fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return to, session, secret, err
}

// wanted is where the holder of a ticket wanted to go.
func (r *Registrar) wanted(ctx context.Context, ticket string) (to string, err error) {
	data, err := r.asked(ctx, ticket, forProvider, "")
	if err != nil {
		return "", err
	}
	return to, json.Unmarshal(data, &to)
}

// verified is the member whom the provider knows by their e-mail address.
func (r *Registrar) verified(ctx context.Context, ticket tenants.Secret, code string) (tenants.Member, error) {
	email, err := r.Provider.Finish(ctx, ticket, code)
	if err != nil {
		return tenants.Member{}, err
	}
	member, err := r.member(ctx, email)
	if errors.Is(err, tenants.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return member, err
}

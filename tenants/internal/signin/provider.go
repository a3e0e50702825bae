package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const forProvider = "sign in by an identity provider"

// providerLifetime is how long a sign-in at the identity provider may take.
const providerLifetime = 10 * time.Minute

// Why a person known to an identity provider can't sign in.
var (
	ErrNoMember   = errors.New("no member has this address")
	ErrUnverified = errors.New("the identity provider has not verified the e-mail address")
)

// A Provider signs members in by the identity
// provider. Its methods need Usable.
type Provider struct{ *base }

// Usable reports whether there is an identity provider.
func (p *Provider) Usable() bool { return p.Config.Provider != nil }

// Name is the identity provider's name; "": there is none.
func (p *Provider) Name() string {
	if !p.Usable() {
		return ""
	}
	return p.Config.Provider.Name
}

// Start begins a sign-in at the identity provider, with a
// page as destination. It returns the address to redirect to.
func (p *Provider) Start(ctx context.Context, to string) (address string, ticket tenants.Secret, err error) {
	data, err := json.Marshal(to)
	if err != nil {
		return "", ticket, err
	}
	if ticket, err = p.Challenges.Issue(ctx, challenge.Challenge{Purpose: forProvider, Data: data, Lasts: providerLifetime}); err != nil {
		return "", ticket, err
	}
	address, err = p.Config.Provider.Start(ctx, ticket)
	return address, ticket, err
}

// A ProviderSignIn is the result of a sign-in at an identity provider.
type ProviderSignIn struct {
	tenants.SignInResult
	To    string // destination
	First bool   // the member's identity was unknown before
}

// SignIn starts a session for the member with an identity at the
// provider. An unknown one is found by the e-mail address that the
// provider has verified, once: from then on the address does not
// count. It fails with challenge.ErrNone, ErrNoMember, ErrUnverified,
// tenants.ErrOtherIdentity, or an error of package oidc.
func (p *Provider) SignIn(ctx context.Context, request unitofwork.Request, ticket, state, code string) (in ProviderSignIn, err error) {
	known, err := challenge.ParseTicket(ticket)
	if err != nil || !oidc.StateMatches(known, state) {
		return in, challenge.ErrNone
	}
	if in.To, err = p.wanted(ctx, ticket); err != nil {
		return in, err
	}
	claims, err := p.Config.Provider.Finish(ctx, known, code)
	if err != nil {
		return in, err
	}
	member, err := p.memberAs(ctx, claims)
	if err != nil {
		return in, err
	}
	in.SignInResult, in.First, err = p.signInAs(ctx, request.By(member), member, claims.Identity)
	if errors.Is(err, ErrSignIn) || errors.Is(err, tenants.ErrNotFound) { // removed meanwhile
		err = fmt.Errorf("%w: %w", ErrNoMember, err)
	}
	return in, err
}

// memberAs is the member with the identity at the
// provider, or with the address it has verified.
func (p *Provider) memberAs(ctx context.Context, claims oidc.Claims) (tenants.Member, error) {
	member, err := p.Members(p.Work.Views).MemberByIdentity(ctx, claims.Identity)
	if !errors.Is(err, tenants.ErrNotFound) {
		return member, err
	}
	if claims.Email == "" {
		return member, ErrUnverified
	}
	member, err = p.member(ctx, claims.Email)
	if errors.Is(err, tenants.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrNoMember, err)
	}
	return member, err
}

// signInAs records a member's identity at the provider,
// reports whether it is new, and starts a session.
func (p *Provider) signInAs(ctx context.Context, request unitofwork.Request, member tenants.Member,
	identity tenants.ProviderIdentity) (entry tenants.SignInResult, first bool, err error) {
	u, err := p.Work.Begin(ctx, member.Organization, request)
	if err != nil {
		return entry, false, err
	}
	defer u.Rollback(ctx)
	if first, err = identify(ctx, u, member, identity); err != nil {
		return entry, first, err
	}
	if entry, err = p.startVerified(ctx, u, member, tenants.ByOIDC); err != nil {
		return entry, first, err
	}
	return entry, first, u.Commit(ctx)
}

// identify records a member's identity at the
// provider, and reports whether it is new.
func identify(ctx context.Context, u *unitofwork.Unit, member tenants.Member, identity tenants.ProviderIdentity) (first bool, err error) {
	thing, err := unitofwork.Load[tenants.Member](ctx, u, memberStream(member))
	if err != nil {
		return false, err
	}
	events, err := thing.State.Identify(tenants.Identify{Identity: identity, At: u.Now()})
	if err != nil {
		return false, err
	}
	return len(events) > 0, unitofwork.Append(ctx, u, &thing, events)
}

// wanted is the destination of a ticket's holder.
func (p *Provider) wanted(ctx context.Context, ticket string) (to string, err error) {
	data, err := p.Challenges.Take(ctx, ticket, forProvider, "")
	if err != nil {
		return "", err
	}
	return to, json.Unmarshal(data, &to)
}

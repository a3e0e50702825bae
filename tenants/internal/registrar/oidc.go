package registrar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/oidc"
)

const forProvider = "sign in by an identity provider"

// providerLasts is how long somebody has to sign in at the identity provider.
const providerLasts = 10 * time.Minute

// Why nobody is let in whom an identity provider knows.
var (
	ErrStranger   = errors.New("no member has this address")
	ErrUnverified = errors.New("the identity provider has not verified the e-mail address")
)

// SignInAtProvider begins a sign-in at the identity provider, after which its holder wants to go to a page. It returns
// the address to go to.
func (r *Registrar) SignInAtProvider(ctx context.Context, to string) (address string, ticket tenants.Secret, err error) {
	data, err := json.Marshal(to)
	if err != nil {
		return "", ticket, err
	}
	if ticket, err = r.Challenges.Ask(ctx, challenge.Question{Purpose: forProvider, Data: data, Lasts: providerLasts}); err != nil {
		return "", ticket, err
	}
	address, err = r.Provider.Start(ctx, ticket)
	return address, ticket, err
}

// A ProviderSignIn is what follows when an identity provider has said who somebody is.
type ProviderSignIn struct {
	tenants.Entry
	To    string // where they wanted to go
	First bool   // nobody knew yet who the member is at the provider
}

// SignInByProvider starts a session for the member who is somebody at the identity provider. Of whom that is not known it
// goes by the e-mail address that the provider has verified, once: from then on the address does not count. It fails with
// challenge.ErrNone, ErrStranger, ErrUnverified, tenants.ErrOtherIdentity, or an error of package oidc.
func (r *Registrar) SignInByProvider(ctx context.Context, request Request, ticket, state, code string) (in ProviderSignIn, err error) {
	known, err := challenge.ParseTicket(ticket)
	if err != nil || !oidc.Began(known, state) {
		return in, challenge.ErrNone
	}
	if in.To, err = r.wanted(ctx, ticket); err != nil {
		return in, err
	}
	person, err := r.Provider.Finish(ctx, known, code)
	if err != nil {
		return in, err
	}
	member, err := r.memberAs(ctx, person)
	if err != nil {
		return in, err
	}
	err = r.inTurn(ctx, member.Organization, request.By(member), func(t *turn) (err error) {
		in.First, err = t.identify(ctx, member, person.Identity)
		if err == nil {
			in.Entry, err = t.letInAgain(ctx, member, tenants.ByOIDC)
		}
		return err
	})
	if errors.Is(err, ErrSignIn) || errors.Is(err, tenants.ErrNotFound) { // is no member any more
		err = fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return in, err
}

// memberAs is the member who is a person at the provider, or who has the address that it has verified.
func (r *Registrar) memberAs(ctx context.Context, person oidc.Person) (tenants.Member, error) {
	member, err := r.Views.MemberByIdentity(ctx, person.Identity)
	if !errors.Is(err, tenants.ErrNotFound) {
		return member, err
	}
	if person.Email == "" {
		return member, ErrUnverified
	}
	member, err = r.member(ctx, person.Email)
	if errors.Is(err, tenants.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return member, err
}

// identify keeps who a member is at the provider, and tells whether that is news.
func (t *turn) identify(ctx context.Context, member tenants.Member, identity tenants.ProviderIdentity) (news bool, err error) {
	_, err = t.changeMember(ctx, member, func(m tenants.Member) ([]tenants.Event, error) {
		events, err := m.Identify(tenants.Identify{Identity: identity, At: t.now()})
		news = len(events) > 0
		return events, err
	})
	return news, err
}

// wanted is where the holder of a ticket wanted to go.
func (r *Registrar) wanted(ctx context.Context, ticket string) (to string, err error) {
	data, err := r.Challenges.Take(ctx, ticket, forProvider, "")
	if err != nil {
		return "", err
	}
	return to, json.Unmarshal(data, &to)
}

package signin

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Members finds members.
type Members interface {
	// Member returns one, unless removed, or ErrNotFound.
	Member(ctx context.Context, as pg.Organization, id string) (tenants.Member, error)
	// MemberEver returns one, even a removed one, or ErrNotFound.
	MemberEver(ctx context.Context, as pg.Organization, id string) (tenants.Member, error)
	// MemberByEmail returns the one of any organization
	// with a normal address, or ErrNotFound.
	MemberByEmail(ctx context.Context, email string) (tenants.Member, error)
	// MembersByEmail lists those of all
	// organizations with some normal addresses.
	MembersByEmail(ctx context.Context, emails []string) ([]tenants.Member, error)
	// MemberByIdentity returns the one of any organization
	// with an identity at a provider, or ErrNotFound.
	MemberByIdentity(ctx context.Context, identity tenants.ProviderIdentity) (tenants.Member, error)
}

// Organizations finds the names and security policies of organizations.
type Organizations interface {
	Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error)
	SecurityPolicy(ctx context.Context, as, organization pg.Organization) (tenants.SecurityPolicy, error)
}

// Config is what the services need. Only
// RelyingParty and Provider may be nil.
type Config struct {
	Work          *unitofwork.Writer
	Members       func(in *query.Reader) Members
	Organizations func(in *query.Reader) Organizations
	Passwords     *password.Hasher
	Challenges    *challenge.Challenges
	RelyingParty  *passkey.RelyingParty // nil: passkeys can't be used here
	Provider      *oidc.Provider        // nil: there is no identity provider
	Dropped       func()                // called for each failed sign-in that was not counted
	Logger        *slog.Logger
}

// base is what all services share.
type base struct {
	Config
	store Store
}

// Services decide about sign-ins. Their errors are
// those of unitofwork.Writer and of this package.
type Services struct {
	Sessions  *Sessions
	Passwords *Passwords
	Passkeys  *Passkeys
	Provider  *Provider
	Access    *Access
	Failures  *Failures
}

// New returns the services.
func New(config Config) Services {
	b := &base{config, NewStore(config.Work.Views)}
	return Services{
		Sessions: &Sessions{b}, Passwords: &Passwords{b}, Passkeys: &Passkeys{b}, Provider: &Provider{b}, Access: &Access{},
		Failures: &Failures{base: b, pending: map[string]tenants.SignInFailures{}},
	}
}

// passwordsOff reports whether an organization has
// switched passwords off, as a reader sees it.
func (b *base) passwordsOff(ctx context.Context, in *query.Reader, organization string) (bool, error) {
	policy, err := b.Organizations(in).SecurityPolicy(ctx, pg.Organization(organization), pg.Organization(organization))
	return policy.PasswordsOff, err
}

// allowed is ErrPasswordsOff if an organization has switched passwords off.
func (b *base) allowed(ctx context.Context, in *query.Reader, organization string) error {
	off, err := b.passwordsOff(ctx, in, organization)
	if err == nil && off {
		err = ErrPasswordsOff
	}
	return err
}

// member returns the member with an address in any spelling, or ErrNotFound.
func (b *base) member(ctx context.Context, email string) (tenants.Member, error) {
	if !tenants.IsEmail(email) {
		return tenants.Member{}, tenants.ErrNotFound
	}
	return b.Members(b.Work.Views).MemberByEmail(ctx, tenants.NormalEmail(email))
}

// own is a unit of work of one decision about
// the caller's own, whatever their role.
func own[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, work *unitofwork.Writer, request unitofwork.Request,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error)) (state S, err error) {
	u, err := work.Begin(ctx, stream.Organization, request)
	if err != nil {
		return state, err
	}
	defer u.Rollback(ctx)
	if state, err = unitofwork.Change[S, P](ctx, u, stream, decide); err != nil {
		return state, err
	}
	return state, u.Commit(ctx)
}

func memberStream(member tenants.Member) eventstore.Stream {
	return unitofwork.Stream(member.Organization, "member", member.ID)
}

package signin

import (
	"context"
	"errors"
	"log/slog"
	"time"

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

const sessionPrefix = "ses_"

// start starts a session. Once the unit is committed, it is in force,
// unless the broker is slow or unavailable. The secret is stored nowhere.
func start(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (entry tenants.SignInResult, err error) {
	secret, err := tenants.NewSecret(tenants.SessionPrefix, u.Random)
	if err != nil {
		return entry, err
	}
	if err := endOldest(ctx, u, member); err != nil {
		return entry, err
	}
	cmd := tenants.StartSession{ID: sessionPrefix + u.IDs(), Member: member, Method: method, Digest: secret.Digest(), At: u.Now()}
	session, err := unitofwork.Change(ctx, u, sessionStream(member.Organization, cmd.ID),
		func(s tenants.Session) ([]tenants.Event, error) { return s.Start(cmd) })
	if err != nil {
		return entry, err
	}
	devices, err := keepDevice(ctx, u, session)
	return tenants.SignInResult{Session: session, Secret: secret, Devices: devices}, err
}

// endOldest ends the oldest sessions of a
// member at the limit, to make room for one.
func endOldest(ctx context.Context, u *unitofwork.Unit, member tenants.Member) error {
	sessions, err := NewStore(u.Reader()).Sessions(ctx, pg.Organization(member.Organization), member.ID, u.Now())
	if err != nil {
		return err
	}
	cmd := tenants.Revoke{Reason: "the member has signed in many times since", At: u.Now()}
	for _, session := range sessions[:max(0, len(sessions)+1-u.Limits.Sessions)] {
		_, err := unitofwork.Change(ctx, u, sessionStream(member.Organization, session.ID),
			func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
		if err != nil {
			return err
		}
	}
	return nil
}

// completeSignIn starts the session of a member who proved their identity.
func (b *base) completeSignIn(ctx context.Context, request unitofwork.Request, proved tenants.Member, method tenants.SignInMethod) (
	entry tenants.SignInResult, err error) {
	u, err := b.Work.Begin(ctx, proved.Organization, request)
	if err != nil {
		return entry, err
	}
	defer u.Rollback(ctx)
	if entry, err = b.startVerified(ctx, u, proved, method); err != nil {
		return entry, err
	}
	return entry, u.Commit(ctx)
}

// startVerified starts a session for an authenticated member,
// unless they were removed meanwhile, or got another password.
func (b *base) startVerified(ctx context.Context, u *unitofwork.Unit, proved tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error) {
	member, err := b.Members(u.Reader()).Member(ctx, pg.Organization(proved.Organization), proved.ID)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && member.PasswordHash != proved.PasswordHash {
		err = ErrSignIn
	}
	if err == nil && method == tenants.ByPassword {
		err = b.allowed(ctx, u.Reader(), member.Organization)
	}
	if err != nil {
		return tenants.SignInResult{}, err
	}
	return start(ctx, u, member, method)
}

// checkOpen is unitofwork.ErrRemoved for an ended
// session: what it stores must not outlive it.
func checkOpen(ctx context.Context, u *unitofwork.Unit, organization, id string) error {
	session, err := NewStore(u.Reader()).Session(ctx, pg.Organization(organization), id)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && !session.Revocation.At.IsZero() {
		return unitofwork.ErrRemoved
	}
	return err
}

// confirm records that the signed-in caller has proved their
// identity again. The secret is the session's new one.
func (b *base) confirm(ctx context.Context, request unitofwork.Request, id string, method tenants.SignInMethod) (tenants.Session, tenants.Secret, error) {
	secret, err := tenants.NewSecret(tenants.SessionPrefix, b.Work.Random)
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	cmd := tenants.ConfirmSession{Method: method, Digest: secret.Digest(), At: b.Work.Now()}
	session, err := own(ctx, b.Work, request, sessionStream(request.Caller.Organization, id),
		func(s tenants.Session) ([]tenants.Event, error) { return s.Confirm(cmd) })
	return session, secret, err
}

// ErrPasswordsOff means that the member's organization has switched
// passwords off. It is disclosed only after the right one, or in a session.
var ErrPasswordsOff = errors.New("the organization has switched passwords off")

// ErrLastSignInMethod means that a member could no longer sign in.
var ErrLastSignInMethod = errors.New("this is the member's only way to sign in while passwords are switched off")

// checkOtherSignInMethod is ErrLastSignInMethod if
// a member of an organization without passwords
// has no other way to sign in than one passkey.
func (b *base) checkOtherSignInMethod(ctx context.Context, u *unitofwork.Unit, member tenants.Member, without string) error {
	off, err := b.passwordsOff(ctx, u.Reader(), member.Organization)
	if err != nil || !off || b.Config.Provider != nil && member.Identity.Issuer == b.Config.Provider.Issuer {
		return err
	}
	passkeys, err := NewStore(u.Reader()).Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	if err != nil {
		return err
	}
	for _, other := range passkeys {
		if other.ID != without && other.SuspectedAt.IsZero() {
			return nil
		}
	}
	return ErrLastSignInMethod
}

// Access starts and ends members' access, in the caller's unit of work.
type Access struct{}

// StartSession starts a member's session.
func (*Access) StartSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error) {
	return start(ctx, u, member, method)
}

// ChangeRoles sets the role of a member's open sessions.
func (*Access) ChangeRoles(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role, at time.Time) error {
	return eachSession(ctx, u, member, "", func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, at) })
}

// EndSessions ends a member's open sessions, and forgets their browsers.
func (*Access) EndSessions(ctx context.Context, u *unitofwork.Unit, member tenants.Member, reason string) error {
	return endAll(ctx, u, member, reason, "", nil)
}

// RemovePasskeys ends all passkeys of a member.
func (*Access) RemovePasskeys(ctx context.Context, u *unitofwork.Unit, member tenants.Member) error {
	passkeys, err := NewStore(u.Reader()).Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	for _, each := range passkeys {
		if err == nil {
			err = remove(ctx, u, each)
		}
	}
	return err
}

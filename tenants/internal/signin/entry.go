package signin

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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

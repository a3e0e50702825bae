package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/query"
)

// ErrSignIn says that there is no member with that address and password. It does not say which of them is wrong, and
// takes the same time for both.
var ErrSignIn = errors.New("no member has this address and password")

// SignIn starts, for a request of whoever it may be, a session for the member with an address and a password,
// or fails with ErrSignIn. When it returns, the session is in force, unless the broker is slow or away. The secret is in
// no other place.
func (r *Registrar) SignIn(ctx context.Context, request Request, email string, password tenants.Password) (tenants.Entry, error) {
	member, err := r.authenticate(ctx, request, email, password)
	if err != nil {
		return tenants.Entry{}, err
	}
	return r.startSession(ctx, request.By(member), member, tenants.ByPassword)
}

// startSession lets a member in who has proved who they are.
func (r *Registrar) startSession(ctx context.Context, request Request, proved tenants.Member, method tenants.SignInMethod) (entry tenants.Entry, err error) {
	err = r.inTurn(ctx, proved.Organization, request, func(t *turn) (err error) {
		entry, err = t.letInAgain(ctx, proved, method)
		return err
	})
	return entry, err
}

// letInAgain starts a session for a member who has proved who they are. One who was removed meanwhile, or got another
// password, stays outside.
func (t *turn) letInAgain(ctx context.Context, proved tenants.Member, method tenants.SignInMethod) (tenants.Entry, error) {
	member, err := t.views.Member(ctx, pg.Organization(proved.Organization), proved.ID)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && member.PasswordHash != proved.PasswordHash {
		err = ErrSignIn
	}
	if err == nil && method == tenants.ByPassword {
		err = allowed(ctx, t.views, member.Organization)
	}
	if err != nil {
		return tenants.Entry{}, err
	}
	return t.startSession(ctx, member, method)
}

// startSession lets a member in.
func (t *turn) startSession(ctx context.Context, member tenants.Member, method tenants.SignInMethod) (entry tenants.Entry, err error) {
	secret, err := tenants.NewSecret(tenants.SessionPrefix, t.Random)
	if err != nil {
		return entry, err
	}
	if err := t.endOldest(ctx, member); err != nil {
		return entry, err
	}
	cmd := tenants.StartSession{ID: sessionPrefix + t.IDs(), Member: member, Method: method, Digest: secret.Digest(), At: t.now()}
	session, err := t.changeSession(ctx, member.Organization, cmd.ID, func(s tenants.Session) ([]tenants.Event, error) { return s.Start(cmd) })
	if err != nil {
		return entry, err
	}
	devices, err := t.keepDevice(ctx, session)
	return tenants.Entry{Session: session, Secret: secret, Devices: devices}, err
}

// endOldest ends the oldest sessions of a member who has as many as there may be, so that there is room for one more.
func (t *turn) endOldest(ctx context.Context, member tenants.Member) error {
	sessions, err := t.views.Sessions(ctx, pg.Organization(member.Organization), member.ID, t.now())
	if err != nil {
		return err
	}
	for _, session := range sessions[:max(0, len(sessions)+1-t.Limits.Sessions)] {
		_, err := t.changeSession(ctx, member.Organization, session.ID, func(s tenants.Session) ([]tenants.Event, error) {
			return s.End(tenants.Revoke{Reason: "the member has signed in many times since", At: t.now()})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stillOpen is ErrRemoved where a session has ended: what it leaves behind must not outlive it.
func (t *turn) stillOpen(ctx context.Context, organization, id string) error {
	session, err := t.views.Session(ctx, pg.Organization(organization), id)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && !session.Revocation.At.IsZero() {
		return ErrRemoved
	}
	return err
}

// endSessions ends the sessions that a member has open, but not the one called except.
func (t *turn) endSessions(ctx context.Context, member tenants.Member, reason, except string) error {
	return t.eachSession(ctx, member, except, func(s tenants.Session) ([]tenants.Event, error) {
		return s.End(tenants.Revoke{Reason: reason, At: t.now()})
	})
}

// eachSession keeps a decision on each session that a member has open, but not on the one called except.
func (t *turn) eachSession(ctx context.Context, member tenants.Member, except string, decide func(tenants.Session) ([]tenants.Event, error)) error {
	sessions, err := t.views.Sessions(ctx, pg.Organization(member.Organization), member.ID, t.now())
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if session.ID == except {
			continue
		}
		if _, err := t.changeSession(ctx, member.Organization, session.ID, decide); err != nil {
			return err
		}
	}
	return nil
}

// authenticate compares a password with that of the member who has the address, and with nobody's where none has it.
func (r *Registrar) authenticate(ctx context.Context, request Request, email string, password tenants.Password) (tenants.Member, error) {
	member, err := r.member(ctx, email)
	if errors.Is(err, tenants.ErrNotFound) {
		if err := r.Passwords.MatchNothing(ctx, askerOf(request), password); err != nil {
			return tenants.Member{}, err
		}
		return tenants.Member{}, ErrSignIn
	}
	if err != nil {
		return tenants.Member{}, err
	}
	return member, r.matches(ctx, request, member, password)
}

// matches is nil for the member's password, and ErrSignIn for another.
func (r *Registrar) matches(ctx context.Context, request Request, member tenants.Member, password tenants.Password) error {
	right, err := r.Passwords.Matches(ctx, askerOf(request), member.PasswordHash, password)
	if err != nil {
		return fmt.Errorf("cannot compare the password of %q: %w", member.ID, err)
	}
	if !right {
		return ErrSignIn
	}
	return nil
}

// member returns the member with an address, in whatever spelling, or ErrNotFound.
func (r *Registrar) member(ctx context.Context, email string) (tenants.Member, error) {
	if !tenants.IsEmail(email) {
		return tenants.Member{}, tenants.ErrNotFound
	}
	return r.Views.MemberByEmail(ctx, tenants.NormalEmail(email))
}

// RenewSession keeps the session of a caller from ending for want of use. It returns the secret that the session has
// now, which follows from the one presented: the same one for everybody who asks with that, so that several tabs at once
// and an answer that got lost do no harm. Where nothing is due, that is the one presented.
func (r *Registrar) RenewSession(ctx context.Context, request Request, id string, presented tenants.Secret) (tenants.Session, tenants.Secret, error) {
	salt, err := r.salt()
	if err != nil {
		return tenants.Session{}, presented, err
	}
	cmd := tenants.RenewSession{Presented: presented.Digest().Hash, Digest: presented.Next(salt).Digest(), Salt: salt, At: r.now()}
	session, err := r.changeSession(ctx, request, id,
		func(s tenants.Session) ([]tenants.Event, error) { return s.Renew(cmd) })
	if next := presented.Next(session.Replaced.Salt); err == nil && next.Digest() == session.Digest {
		return session, next, nil
	}
	return session, presented, err
}

// salt is what makes a secret from the one before it: 192 random bits, in hexadecimal.
func (r *Registrar) salt() (string, error) {
	drawn, err := tenants.NewSecret("", r.Random)
	return drawn.Reveal(), err
}

// ConfirmByPassword lets the caller, who has a session, prove anew who they are, or fails with ErrSignIn. The secret is
// the new one of the session.
func (r *Registrar) ConfirmByPassword(ctx context.Context, request Request, id string, password tenants.Password) (tenants.Session, tenants.Secret, error) {
	member, err := r.Views.Member(ctx, pg.Organization(request.Caller.Organization), request.Caller.ID)
	if err == nil {
		err = allowed(ctx, r.Views, member.Organization)
	}
	if err == nil {
		err = r.matches(ctx, request, member, password)
	}
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	return r.confirmSession(ctx, request, id, tenants.ByPassword)
}

// confirmSession says that a caller has proved anew who they are.
func (r *Registrar) confirmSession(ctx context.Context, request Request, id string, method tenants.SignInMethod) (tenants.Session, tenants.Secret, error) {
	secret, err := tenants.NewSecret(tenants.SessionPrefix, r.Random)
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	cmd := tenants.ConfirmSession{Method: method, Digest: secret.Digest(), At: r.now()}
	session, err := r.changeSession(ctx, request, id,
		func(s tenants.Session) ([]tenants.Event, error) { return s.Confirm(cmd) })
	return session, secret, err
}

// SignOut ends a session of the caller. When it returns, no replica that follows the broker
// lets it in for longer than a record takes to get there.
func (r *Registrar) SignOut(ctx context.Context, request Request, id string) error {
	cmd := tenants.Revoke{Reason: "signed out", At: r.now()}
	_, err := r.changeSession(ctx, request, id,
		func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
	return err
}

// Sessions lists at most limit sessions of a member whom the caller, a service token, reaches and manages, after a position:
// those that have neither ended nor expired.
func (r *Registrar) Sessions(ctx context.Context, caller tenants.Caller, member string, after query.Position, limit int) ([]postgres.SeenSession, error) {
	if !tenants.IsID(member) {
		return nil, fmt.Errorf("member %q: %w", member, tenants.ErrNotFound)
	}
	of, err := r.Views.Member(ctx, pg.Organization(caller.Organization), member)
	if err != nil {
		return nil, err
	}
	if !caller.Role().MayManage(of.Role) {
		return nil, fmt.Errorf("sessions of an %s: %w", of.Role, tenants.ErrForbidden)
	}
	return r.Views.SessionsAfter(ctx, pg.Organization(caller.Organization), member, r.now(), after, limit)
}

// RevokeSession ends a session of a member whom the caller reaches and manages.
func (r *Registrar) RevokeSession(ctx context.Context, request Request, id, reason string) (postgres.SeenSession, error) {
	if !tenants.IsID(id) {
		return postgres.SeenSession{}, fmt.Errorf("session %q: %w", id, tenants.ErrNotFound)
	}
	found, err := r.Views.Session(ctx, pg.Organization(request.Caller.Organization), id)
	if err != nil {
		return postgres.SeenSession{}, err
	}
	err = r.inTurn(ctx, found.Organization, request, func(t *turn) error {
		if err := t.manages(ctx, found.Organization, found.Member); err != nil {
			return err
		}
		if err := postgres.ForgetDeviceOf(ctx, t.tx, pg.Organization(found.Organization), id); err != nil {
			return err
		}
		cmd := tenants.Revoke{Reason: reason, At: t.now()}
		found.Session, err = t.changeSession(ctx, found.Organization, id, func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
		return err
	})
	return found, err
}

// manages is nil where the caller manages a member, who may have been removed.
func (t *turn) manages(ctx context.Context, organization, id string) error {
	by, err := t.powers(ctx)
	if err != nil {
		return err
	}
	member, err := t.views.MemberEver(ctx, pg.Organization(organization), id)
	if err == nil && !by.MayManage(member.Role) {
		err = fmt.Errorf("an %s as %q: %w", member.Role, by, tenants.ErrForbidden)
	}
	return err
}

// EndOwnSession ends a session of the caller, who has signed in.
func (r *Registrar) EndOwnSession(ctx context.Context, request Request, id string) error {
	found, err := r.Views.Session(ctx, pg.Organization(request.Caller.Organization), id)
	if err == nil && found.Member != request.Caller.ID {
		err = fmt.Errorf("session %q: %w", id, tenants.ErrNotFound)
	}
	if err != nil {
		return err
	}
	cmd := tenants.Revoke{Reason: "signed out from another session", At: r.now()}
	return r.inTurn(ctx, found.Organization, request, func(t *turn) error {
		_, err := t.changeSession(ctx, found.Organization, id, func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
		if err != nil {
			return err
		}
		return postgres.ForgetDeviceOf(ctx, t.tx, pg.Organization(found.Organization), id)
	})
}

// EndOtherSessions ends all sessions of the caller but the one that asks: all of them or none.
func (r *Registrar) EndOtherSessions(ctx context.Context, request Request, own string) error {
	caller := tenants.Member{ID: request.Caller.ID, Organization: request.Caller.Organization}
	return r.inTurn(ctx, caller.Organization, request, func(t *turn) error {
		if err := t.endSessions(ctx, caller, "signed out from another session", own); err != nil {
			return err
		}
		return t.forgetDevices(ctx, caller, request.Devices)
	})
}

// changeSession keeps a decision on a session of the caller's organization, and waits until it is in force.
func (r *Registrar) changeSession(ctx context.Context, request Request, id string,
	decide func(tenants.Session) ([]tenants.Event, error)) (session tenants.Session, err error) {
	return update(ctx, r, request, streamOf(request.Caller.Organization, "session", id), decide)
}

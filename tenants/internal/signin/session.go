package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Sessions decides about sessions.
type Sessions struct{ *base }

// Renew renews the session of a caller, if that is due, and returns
// its secret. A new secret is derived from the presented one, so that
// several tabs, and retries after a lost response, get the same.
func (s *Sessions) Renew(ctx context.Context, request unitofwork.Request, id string, presented tenants.Secret) (tenants.Session, tenants.Secret, error) {
	salt, err := s.salt()
	if err != nil {
		return tenants.Session{}, presented, err
	}
	cmd := tenants.RenewSession{Presented: presented.Digest().Hash, Digest: presented.Next(salt).Digest(), Salt: salt, At: s.Work.Now()}
	session, err := s.renew(ctx, request, sessionStream(request.Caller.Organization, id), cmd)
	if next := presented.Next(session.Replaced.Salt); err == nil && next.Digest() == session.Digest {
		return session, next, nil
	}
	return session, presented, err
}

// renew checks first: most renewals are early, and
// units of work are serial for the whole installation.
func (s *Sessions) renew(ctx context.Context, request unitofwork.Request, of eventstore.Stream, cmd tenants.RenewSession) (tenants.Session, error) {
	session, _, err := eventstore.Load[tenants.Session](ctx, s.Work.Events, of)
	if err != nil {
		return session, err
	}
	if events, err := session.Renew(cmd); err != nil || len(events) == 0 {
		return session, err
	}
	return own(ctx, s.Work, request, of, func(s tenants.Session) ([]tenants.Event, error) { return s.Renew(cmd) })
}

// salt derives a secret from the previous
// one: 192 random bits, in hexadecimal.
func (s *Sessions) salt() (string, error) {
	drawn, err := tenants.NewSecret("", s.Work.Random)
	return drawn.Reveal(), err
}

// SignOut ends a session of the caller, everywhere once the broker has it.
func (s *Sessions) SignOut(ctx context.Context, request unitofwork.Request, id string) error {
	cmd := tenants.Revoke{Reason: "signed out", At: s.Work.Now()}
	_, err := own(ctx, s.Work, request, sessionStream(request.Caller.Organization, id),
		func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
	return err
}

// List lists at most limit sessions in force of a member whom the
// caller, a service token, may access and manage, after a position.
func (s *Sessions) List(ctx context.Context, caller tenants.Caller, member string, after query.Position, limit int) ([]SeenSession, error) {
	if !tenants.IsID(member) {
		return nil, fmt.Errorf("member %q: %w", member, tenants.ErrNotFound)
	}
	of, err := s.Members(s.Work.Views).Member(ctx, pg.Organization(caller.Organization), member)
	if err != nil {
		return nil, err
	}
	if !caller.Role().MayManage(of.Role) {
		return nil, fmt.Errorf("sessions of an %s: %w", of.Role, tenants.ErrForbidden)
	}
	return s.store.SessionsAfter(ctx, pg.Organization(caller.Organization), member, s.Work.Now(), after, limit)
}

// OfCaller lists the caller's sessions that have
// neither ended nor expired at now, oldest first.
func (s *Sessions) OfCaller(ctx context.Context, caller tenants.Caller, now time.Time) ([]SeenSession, error) {
	return s.store.Sessions(ctx, pg.Organization(caller.Organization), caller.ID, now)
}

// Revoke ends a session of a member whom the caller may access and manage.
func (s *Sessions) Revoke(ctx context.Context, request unitofwork.Request, id, reason string) (SeenSession, error) {
	if !tenants.IsID(id) {
		return SeenSession{}, fmt.Errorf("session %q: %w", id, tenants.ErrNotFound)
	}
	found, err := s.store.Session(ctx, pg.Organization(request.Caller.Organization), id)
	if err != nil {
		return SeenSession{}, err
	}
	u, err := s.Work.Begin(ctx, found.Organization, request)
	if err != nil {
		return found, err
	}
	defer u.Rollback(ctx)
	if err := s.manages(ctx, u, found.Session); err != nil {
		return found, err
	}
	if found.Session, err = endInDevice(ctx, u, found.Session, reason); err != nil {
		return found, err
	}
	return found, u.Commit(ctx)
}

// manages is nil if the caller manages the
// member of a session, even a removed one.
func (s *Sessions) manages(ctx context.Context, u *unitofwork.Unit, session tenants.Session) error {
	by, err := u.Role(ctx)
	if err != nil {
		return err
	}
	member, err := s.Members(u.Reader()).MemberEver(ctx, pg.Organization(session.Organization), session.Member)
	if err == nil && !by.MayManage(member.Role) {
		err = fmt.Errorf("an %s as %q: %w", member.Role, by, tenants.ErrForbidden)
	}
	return err
}

// EndOwn ends a session of the signed-in caller.
func (s *Sessions) EndOwn(ctx context.Context, request unitofwork.Request, id string) error {
	found, err := s.store.Session(ctx, pg.Organization(request.Caller.Organization), id)
	if err == nil && found.Member != request.Caller.ID {
		err = fmt.Errorf("session %q: %w", id, tenants.ErrNotFound)
	}
	if err != nil {
		return err
	}
	u, err := s.Work.Begin(ctx, found.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	if _, err := endInDevice(ctx, u, found.Session, "signed out from another session"); err != nil {
		return err
	}
	return u.Commit(ctx)
}

// endInDevice ends a session and forgets its browser.
func endInDevice(ctx context.Context, u *unitofwork.Unit, session tenants.Session, reason string) (tenants.Session, error) {
	if err := forgetDeviceOf(ctx, u.Tx(), pg.Organization(session.Organization), session.ID); err != nil {
		return session, err
	}
	cmd := tenants.Revoke{Reason: reason, At: u.Now()}
	return unitofwork.Change(ctx, u, sessionStream(session.Organization, session.ID),
		func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
}

// EndOthers ends all sessions of the caller
// but their own one, or none if it fails.
func (s *Sessions) EndOthers(ctx context.Context, request unitofwork.Request, own string) error {
	caller := tenants.Member{ID: request.Caller.ID, Organization: request.Caller.Organization}
	u, err := s.Work.Begin(ctx, caller.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	if err := endAll(ctx, u, caller, "signed out from another session", own, request.Devices); err != nil {
		return err
	}
	return u.Commit(ctx)
}

// endAll ends a member's open sessions except one, and forgets
// the member's browsers except the one with some secrets.
func endAll(ctx context.Context, u *unitofwork.Unit, member tenants.Member, reason, except string, devices []tenants.Secret) error {
	cmd := tenants.Revoke{Reason: reason, At: u.Now()}
	err := eachSession(ctx, u, member, except, func(s tenants.Session) ([]tenants.Event, error) { return s.End(cmd) })
	if err != nil {
		return err
	}
	return forgetDevices(ctx, u.Tx(), pg.Organization(member.Organization), member.ID, hashesOf(devices))
}

// eachSession stores a decision on each open session
// of a member, but for the one called except.
func eachSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, except string, decide func(tenants.Session) ([]tenants.Event, error)) error {
	sessions, err := NewStore(u.Reader()).Sessions(ctx, pg.Organization(member.Organization), member.ID, u.Now())
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if session.ID == except {
			continue
		}
		if _, err := unitofwork.Change(ctx, u, sessionStream(member.Organization, session.ID), decide); err != nil {
			return err
		}
	}
	return nil
}

func sessionStream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "session", id)
}

// Recognize returns the device by which a browser with some
// secrets is known to the member with an address, or an unknown
// one. It does not reveal whether there is such a member.
func (s *Sessions) Recognize(ctx context.Context, email string, secrets []tenants.Secret) (tenants.Device, error) {
	if len(secrets) == 0 || !tenants.IsEmail(email) {
		return tenants.Device{}, nil
	}
	device, err := s.store.DeviceOf(ctx, tenants.NormalEmail(email), hashesOf(secrets), s.Work.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		err = nil
	}
	return device, err
}

// keepDevice stores a request's browser as
// its member's device, under a new secret.
func keepDevice(ctx context.Context, u *unitofwork.Unit, session tenants.Session) ([]tenants.Secret, error) {
	secret, err := tenants.NewSecret(tenants.DevicePrefix, u.Random)
	if err != nil {
		return nil, err
	}
	now, before := u.Now(), u.Request().Devices
	device := tenants.Device{
		Organization: session.Organization, Member: session.Member, Hash: secret.Digest().Hash, Session: session.ID,
		UsedAt: now, ExpiresAt: now.Add(tenants.DeviceLifetime),
	}
	replaced, err := replaceDevices(ctx, u.Tx(), device, hashesOf(before))
	if err != nil {
		return nil, err
	}
	kept := append([]tenants.Secret{secret}, slices.DeleteFunc(slices.Clone(before), func(s tenants.Secret) bool {
		return slices.Contains(replaced, s.Digest().Hash)
	})...)
	return kept[:min(len(kept), tenants.MaxDeviceSecrets)], nil
}

func hashesOf(secrets []tenants.Secret) []string {
	hashes := make([]string, len(secrets))
	for i, secret := range secrets {
		hashes[i] = secret.Digest().Hash
	}
	return hashes
}

package signin

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Why a passkey is refused.
var (
	ErrPasskey   = errors.New("the passkey was not accepted")
	ErrSuspected = errors.New("there may be a copy of the passkey")
)

// Purposes of challenges. An answer for another purpose is refused.
const (
	forPasskey = "register a passkey"
	forSignIn  = "sign in by passkey"
	forConfirm = "confirm by passkey"
)

const passkeyPrefix = "pky_"

// Passkeys decides about passkeys. Its methods need Usable.
type Passkeys struct{ *base }

// Usable reports whether passkeys can be used here.
func (p *Passkeys) Usable() bool { return p.RelyingParty != nil }

// A PasskeyChallenge is what a browser
// has to answer, and the answer's ticket.
type PasskeyChallenge struct {
	Options any // for the browser, as JSON
	Ticket  tenants.Secret
}

// BeginRegistration challenges the browser of
// a caller's session to register a passkey.
func (p *Passkeys) BeginRegistration(ctx context.Context, caller tenants.Caller, session string) (PasskeyChallenge, error) {
	holder, err := p.holder(ctx, caller.Organization, caller.ID)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	made, err := p.RelyingParty.BeginRegistration(holder)
	return p.issue(ctx, forPasskey, session, made, err)
}

// Register adds a passkey made by the browser of a caller's
// session. It fails with ErrPasskey or challenge.ErrNone for an
// invalid answer, and with ErrRemoved if the session has ended.
func (p *Passkeys) Register(ctx context.Context, request unitofwork.Request, session, ticket, name string, answer []byte) (tenants.Passkey, error) {
	cmd := tenants.RegisterPasskey{ID: passkeyPrefix + p.Work.IDs(), Name: name, At: p.Work.Now()}
	if err := cmd.Check(); err != nil { // before the challenge is used up
		return tenants.Passkey{}, err
	}
	holder, data, err := p.takeChallenge(ctx, request.Caller, ticket, forPasskey, session)
	if err != nil {
		return tenants.Passkey{}, err
	}
	cmd.Member, cmd.Existing = holder.Member, len(holder.Passkeys)
	if cmd.Credential, err = p.RelyingParty.FinishRegistration(holder, data, answer); err != nil {
		return tenants.Passkey{}, passkeyError(err)
	}
	registered, err := p.register(ctx, request, session, cmd)
	if pg.IsUnique(err) {
		err = fmt.Errorf("register a credential that somebody has: %w", ErrPasskey)
	}
	return registered, err
}

func (p *Passkeys) register(ctx context.Context, request unitofwork.Request, session string,
	cmd tenants.RegisterPasskey) (registered tenants.Passkey, err error) {
	u, err := p.Work.Begin(ctx, cmd.Member.Organization, request)
	if err != nil {
		return registered, err
	}
	defer u.Rollback(ctx)
	if err := checkOpen(ctx, u, cmd.Member.Organization, session); err != nil {
		return registered, err
	}
	registered, err = unitofwork.Change(ctx, u, passkeyStream(cmd.Member.Organization, cmd.ID),
		func(p tenants.Passkey) ([]tenants.Event, error) { return p.Register(cmd) })
	if err != nil {
		return registered, err
	}
	return registered, u.Commit(ctx)
}

// BeginSignIn challenges a browser for any passkey.
func (p *Passkeys) BeginSignIn(ctx context.Context) (PasskeyChallenge, error) {
	made, err := p.RelyingParty.BeginSignIn()
	return p.issue(ctx, forSignIn, "", made, err)
}

// SignIn starts a session for the member who has answered BeginSignIn.
// It fails with ErrPasskey, ErrSuspected or challenge.ErrNone.
func (p *Passkeys) SignIn(ctx context.Context, request unitofwork.Request, ticket string, answer []byte) (tenants.SignInResult, error) {
	data, err := p.Challenges.Take(ctx, ticket, forSignIn, "")
	if err != nil {
		return tenants.SignInResult{}, err
	}
	holder, proof, err := p.RelyingParty.FinishSignIn(data, answer, func(member string) (passkey.Holder, error) {
		return p.holder(ctx, tenants.Installation, member)
	})
	if err == nil {
		request = request.By(holder.Member)
		err = p.use(ctx, request, holder, proof)
	}
	if err != nil {
		return tenants.SignInResult{}, passkeyError(err)
	}
	entry, err := p.completeSignIn(ctx, request, holder.Member, tenants.ByPasskey)
	return entry, passkeyError(err)
}

// BeginConfirmation challenges the browser of a
// caller's session for one of the caller's passkeys.
func (p *Passkeys) BeginConfirmation(ctx context.Context, caller tenants.Caller, session string) (PasskeyChallenge, error) {
	holder, err := p.holder(ctx, caller.Organization, caller.ID)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	if len(holder.Passkeys) == 0 {
		return PasskeyChallenge{}, ErrPasskey
	}
	made, err := p.RelyingParty.BeginConfirmation(holder)
	return p.issue(ctx, forConfirm, session, made, err)
}

// Confirm lets the signed-in caller prove their identity again.
// It fails with ErrPasskey, ErrSuspected or challenge.ErrNone.
func (p *Passkeys) Confirm(ctx context.Context, request unitofwork.Request, session, ticket string, answer []byte) (tenants.Session, tenants.Secret, error) {
	holder, data, err := p.takeChallenge(ctx, request.Caller, ticket, forConfirm, session)
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	proof, err := p.RelyingParty.FinishConfirmation(holder, data, answer)
	if err == nil {
		err = p.use(ctx, request, holder, proof)
	}
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, passkeyError(err)
	}
	return p.confirm(ctx, request, session, tenants.ByPasskey)
}

// Remove ends a passkey of the caller. It fails with ErrLastSignInMethod.
func (p *Passkeys) Remove(ctx context.Context, request unitofwork.Request, id string) error {
	found, err := p.Own(ctx, request.Caller, id)
	if err != nil {
		return err
	}
	u, err := p.Work.Begin(ctx, found.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	member, err := p.Members(u.Reader()).Member(ctx, pg.Organization(found.Organization), found.Member)
	if err == nil {
		err = p.checkOtherSignInMethod(ctx, u, member, id)
	}
	if err == nil {
		err = remove(ctx, u, found)
	}
	if err != nil {
		return err
	}
	return u.Commit(ctx)
}

func remove(ctx context.Context, u *unitofwork.Unit, passkey tenants.Passkey) error {
	at := u.Now()
	_, err := unitofwork.Change(ctx, u, passkeyStream(passkey.Organization, passkey.ID),
		func(p tenants.Passkey) ([]tenants.Event, error) { return p.Remove(at) })
	return err
}

// OfCaller lists the passkeys of the caller, oldest first.
func (p *Passkeys) OfCaller(ctx context.Context, caller tenants.Caller) ([]tenants.Passkey, error) {
	return p.store.Passkeys(ctx, pg.Organization(caller.Organization), caller.ID)
}

// Own returns a passkey of the caller, or ErrNotFound.
func (p *Passkeys) Own(ctx context.Context, caller tenants.Caller, id string) (tenants.Passkey, error) {
	if !tenants.IsID(id) {
		return tenants.Passkey{}, fmt.Errorf("passkey %q: %w", id, tenants.ErrNotFound)
	}
	found, err := p.store.Passkey(ctx, pg.Organization(caller.Organization), id)
	if err == nil && found.Member != caller.ID {
		err = fmt.Errorf("passkey %q: %w", id, tenants.ErrNotFound)
	}
	return found, err
}

// holder returns a member with their passkeys, or ErrNotFound.
func (p *Passkeys) holder(ctx context.Context, organization, member string) (holder passkey.Holder, err error) {
	if !tenants.IsID(member) {
		return holder, fmt.Errorf("a holder of passkeys: %w", tenants.ErrNotFound)
	}
	if holder.Member, err = p.Members(p.Work.Views).Member(ctx, pg.Organization(organization), member); err != nil {
		return holder, err
	}
	holder.Passkeys, err = p.store.Passkeys(ctx, pg.Organization(organization), member)
	return holder, err
}

// issue stores a challenge, unless it could not be made.
func (p *Passkeys) issue(ctx context.Context, purpose, subject string, made passkey.Challenge, err error) (PasskeyChallenge, error) {
	if err != nil {
		return PasskeyChallenge{}, err
	}
	ticket, err := p.Challenges.Issue(ctx, challenge.Challenge{Purpose: purpose, Subject: subject, Data: made.Data, Lasts: challenge.Lifetime})
	return PasskeyChallenge{Options: made.Options, Ticket: ticket}, err
}

// takeChallenge returns a challenge's data, and who answers it.
func (p *Passkeys) takeChallenge(ctx context.Context, caller tenants.Caller, ticket, purpose, subject string) (passkey.Holder, []byte, error) {
	data, err := p.Challenges.Take(ctx, ticket, purpose, subject)
	if err != nil {
		return passkey.Holder{}, nil, err
	}
	holder, err := p.holder(ctx, caller.Organization, caller.ID)
	return holder, data, err
}

// use signs a holder in by a proof, or
// fails with ErrNotFound or ErrSuspected.
func (p *Passkeys) use(ctx context.Context, request unitofwork.Request, holder passkey.Holder, proof passkey.Proof) error {
	for _, known := range holder.Passkeys {
		if !bytes.Equal(known.Credential.ID, proof.Credential) {
			continue
		}
		cmd := tenants.UsePasskey{Counter: proof.Counter, BackedUp: proof.BackedUp, At: p.Work.Now()}
		used, err := own(ctx, p.Work, request, passkeyStream(holder.Organization, known.ID),
			func(p tenants.Passkey) ([]tenants.Event, error) { return p.Use(cmd) })
		if err == nil && !used.SuspectedAt.IsZero() {
			err = ErrSuspected
		}
		return err
	}
	return tenants.ErrNotFound
}

func passkeyStream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "passkey", id)
}

// passkeyError is ErrPasskey for every refusal of a
// passkey, so that it does not reveal which are known.
func passkeyError(err error) error {
	if errors.Is(err, passkey.ErrRefused) || errors.Is(err, tenants.ErrNotFound) || errors.Is(err, ErrSignIn) {
		return fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	return err
}

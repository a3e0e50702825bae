package registrar

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/passkey"
)

// Why a passkey lets nobody in.
var (
	ErrPasskey   = errors.New("the passkey was not accepted")
	ErrSuspected = errors.New("there may be a copy of the passkey")
)

// What questions are for. An answer for another purpose is none.
const (
	forPasskey = "register a passkey"
	forSignIn  = "sign in by passkey"
	forConfirm = "confirm by passkey"
)

// Asked is what a browser was asked, and its ticket for the answer.
type Asked struct {
	Options any // for the browser, as JSON
	Ticket  tenants.Secret
}

// AskForPasskey asks the browser of a caller's session for a new passkey.
func (r *Registrar) AskForPasskey(ctx context.Context, caller tenants.Caller, session string) (Asked, error) {
	holder, err := r.holder(ctx, caller.Organization, caller.ID)
	if err != nil {
		return Asked{}, err
	}
	question, err := r.RelyingParty.AskToRegister(holder)
	return r.asking(ctx, forPasskey, session, question, err)
}

// RegisterPasskey adds the passkey that the browser of a caller's session has made. It fails with ErrPasskey or
// challenge.ErrNone where the answer is none, and with ErrRemoved where the session has ended.
func (r *Registrar) RegisterPasskey(ctx context.Context, request Request, session, ticket, name string, answer []byte) (tenants.Passkey, error) {
	cmd := tenants.RegisterPasskey{ID: passkeyPrefix + r.IDs(), Name: name, At: r.now()}
	if err := cmd.Check(); err != nil { // before the challenge is used up
		return tenants.Passkey{}, err
	}
	holder, data, err := r.answering(ctx, request.Caller, ticket, forPasskey, session)
	if err != nil {
		return tenants.Passkey{}, err
	}
	cmd.Member, cmd.Existing = holder.Member, len(holder.Passkeys)
	if cmd.Credential, err = r.RelyingParty.Registered(holder, data, answer); err != nil {
		return tenants.Passkey{}, passkeyError(err)
	}
	var registered tenants.Passkey
	err = r.inTurn(ctx, holder.Organization, request, func(t *turn) (err error) {
		if err := t.stillOpen(ctx, holder.Organization, session); err != nil {
			return err
		}
		registered, err = change(ctx, t, streamOf(holder.Organization, "passkey", cmd.ID),
			func(p tenants.Passkey) ([]tenants.Event, error) { return p.Register(cmd) })
		return err
	})
	if pg.IsUnique(err) {
		err = fmt.Errorf("register a credential that somebody has: %w", ErrPasskey)
	}
	return registered, err
}

// AskWhoSignsIn asks a browser for any passkey.
func (r *Registrar) AskWhoSignsIn(ctx context.Context) (Asked, error) {
	question, err := r.RelyingParty.AskWho()
	return r.asking(ctx, forSignIn, "", question, err)
}

// SignInByPasskey starts a session for the member who has answered AskWhoSignsIn. It fails with ErrPasskey, ErrSuspected
// or challenge.ErrNone.
func (r *Registrar) SignInByPasskey(ctx context.Context, request Request, ticket string, answer []byte) (tenants.Entry, error) {
	data, err := r.Challenges.Take(ctx, ticket, forSignIn, "")
	if err != nil {
		return tenants.Entry{}, err
	}
	holder, proof, err := r.RelyingParty.Who(data, answer, func(member string) (passkey.Holder, error) {
		return r.holder(ctx, tenants.Installation, member)
	})
	if err == nil {
		request = request.By(holder.Member)
		err = r.usePasskey(ctx, request, holder, proof)
	}
	if err != nil {
		return tenants.Entry{}, passkeyError(err)
	}
	entry, err := r.startSession(ctx, request, holder.Member, tenants.ByPasskey)
	return entry, passkeyError(err)
}

// AskToConfirm asks the browser of a caller's session for one of the caller's passkeys.
func (r *Registrar) AskToConfirm(ctx context.Context, caller tenants.Caller, session string) (Asked, error) {
	holder, err := r.holder(ctx, caller.Organization, caller.ID)
	if err != nil {
		return Asked{}, err
	}
	if len(holder.Passkeys) == 0 {
		return Asked{}, ErrPasskey
	}
	question, err := r.RelyingParty.AskAgain(holder)
	return r.asking(ctx, forConfirm, session, question, err)
}

// ConfirmByPasskey lets the caller, who has a session, prove anew who they are. It fails with ErrPasskey, ErrSuspected or
// challenge.ErrNone.
func (r *Registrar) ConfirmByPasskey(ctx context.Context, request Request, session, ticket string, answer []byte) (tenants.Session, tenants.Secret, error) {
	holder, data, err := r.answering(ctx, request.Caller, ticket, forConfirm, session)
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	proof, err := r.RelyingParty.Again(holder, data, answer)
	if err == nil {
		err = r.usePasskey(ctx, request, holder, proof)
	}
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, passkeyError(err)
	}
	return r.confirmSession(ctx, request, session, tenants.ByPasskey)
}

// RemovePasskey ends a passkey of the caller. It fails with ErrLastWay.
func (r *Registrar) RemovePasskey(ctx context.Context, request Request, id string) error {
	found, err := r.OwnPasskey(ctx, request.Caller, id)
	if err != nil {
		return err
	}
	return r.inTurn(ctx, found.Organization, request, func(t *turn) error {
		member, err := t.views.Member(ctx, pg.Organization(found.Organization), found.Member)
		if err == nil {
			err = t.keepsAWay(ctx, member, id)
		}
		if err != nil {
			return err
		}
		_, err = change(ctx, t, streamOf(found.Organization, "passkey", id),
			func(p tenants.Passkey) ([]tenants.Event, error) { return p.Remove(t.now()) })
		return err
	})
}

// removePasskeys ends all passkeys of a member.
func (t *turn) removePasskeys(ctx context.Context, member tenants.Member) error {
	passkeys, err := t.views.Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	for _, each := range passkeys {
		if err == nil {
			_, err = change(ctx, t, streamOf(member.Organization, "passkey", each.ID),
				func(p tenants.Passkey) ([]tenants.Event, error) { return p.Remove(t.now()) })
		}
	}
	return err
}

// OwnPasskey returns a passkey of the caller, or ErrNotFound.
func (r *Registrar) OwnPasskey(ctx context.Context, caller tenants.Caller, id string) (tenants.Passkey, error) {
	if !tenants.IsID(id) {
		return tenants.Passkey{}, fmt.Errorf("passkey %q: %w", id, tenants.ErrNotFound)
	}
	found, err := r.Views.Passkey(ctx, pg.Organization(caller.Organization), id)
	if err == nil && found.Member != caller.ID {
		err = fmt.Errorf("passkey %q: %w", id, tenants.ErrNotFound)
	}
	return found, err
}

// holder returns a member with their passkeys, or ErrNotFound.
func (r *Registrar) holder(ctx context.Context, organization, member string) (holder passkey.Holder, err error) {
	if !tenants.IsID(member) {
		return holder, fmt.Errorf("a holder of passkeys: %w", tenants.ErrNotFound)
	}
	if holder.Member, err = r.Views.Member(ctx, pg.Organization(organization), member); err != nil {
		return holder, err
	}
	holder.Passkeys, err = r.Views.Passkeys(ctx, pg.Organization(organization), member)
	return holder, err
}

// asking keeps a question that could be put.
func (r *Registrar) asking(ctx context.Context, purpose, subject string, question passkey.Question, err error) (Asked, error) {
	if err != nil {
		return Asked{}, err
	}
	ticket, err := r.Challenges.Ask(ctx, challenge.Question{Purpose: purpose, Subject: subject, Data: question.Data, Lasts: challenge.Lasts})
	return Asked{Options: question.Options, Ticket: ticket}, err
}

// answering returns who answers what.
func (r *Registrar) answering(ctx context.Context, caller tenants.Caller, ticket, purpose, subject string) (passkey.Holder, []byte, error) {
	data, err := r.Challenges.Take(ctx, ticket, purpose, subject)
	if err != nil {
		return passkey.Holder{}, nil, err
	}
	holder, err := r.holder(ctx, caller.Organization, caller.ID)
	return holder, data, err
}

// usePasskey lets a holder in by what was proved, or fails with ErrNotFound or ErrSuspected.
func (r *Registrar) usePasskey(ctx context.Context, request Request, holder passkey.Holder, proof passkey.Proof) error {
	for _, known := range holder.Passkeys {
		if !bytes.Equal(known.Credential.ID, proof.Credential) {
			continue
		}
		cmd := tenants.UsePasskey{Counter: proof.Counter, BackedUp: proof.BackedUp, At: r.now()}
		used, err := r.changePasskey(ctx, request, holder.Organization, known.ID,
			func(p tenants.Passkey) ([]tenants.Event, error) { return p.Use(cmd) })
		if err == nil && !used.SuspectedAt.IsZero() {
			err = ErrSuspected
		}
		return err
	}
	return tenants.ErrNotFound
}

func (r *Registrar) changePasskey(ctx context.Context, request Request, organization, id string,
	decide func(tenants.Passkey) ([]tenants.Event, error)) (tenants.Passkey, error) {
	return update(ctx, r, request, streamOf(organization, "passkey", id), decide)
}

// passkeyError is ErrPasskey for whatever a passkey is refused for: nobody learns which of them are known.
func passkeyError(err error) error {
	if errors.Is(err, passkey.ErrRefused) || errors.Is(err, tenants.ErrNotFound) || errors.Is(err, ErrSignIn) {
		return fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	return err
}

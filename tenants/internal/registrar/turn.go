package registrar

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// ErrRemoved says that whoever asks is no member any more, or that their session has ended: the news has not come to this
// process yet.
var ErrRemoved = errors.New("the caller is no member any more, or has signed out")

// A turn is a decision about several things at once: while it is made nobody else decides anything, and all of it is
// kept or nothing.
type turn struct {
	*Registrar
	tx      pgx.Tx
	views   *postgres.Views // as the turn sees them
	request Request
	origin  eventstore.Metadata // kept with what follows
	await   func(bus.Awaited)   // lets the caller wait for a credential
}

// inTurn makes a decision about things of one organization, or as tenants.Installation about those of several, and waits
// until the credentials that it awaits are in force.
func (r *Registrar) inTurn(ctx context.Context, organization string, request Request, decide func(t *turn) error) error {
	return r.CredentialWaiter.PassAll(ctx, func(await func(bus.Awaited)) error {
		return r.Events.InTurn(ctx, organization, func(tx pgx.Tx) error {
			return decide(&turn{r, tx, r.Views.In(tx), request, request.metadata(), await})
		})
	})
}

// as makes the rest of the turn the doing of a member, who is known only once it is under way.
func (t *turn) as(member tenants.Member) {
	t.request = t.request.by(member)
	t.origin = t.request.metadata()
}

// change keeps a decision on one stream of a turn.
func change[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, t *turn, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error)) (S, error) {
	state, _, err := eventstorepg.UpdateTx[S, tenants.Event, P](ctx, t.tx, t.Events, stream, t.origin, decide)
	return state, err
}

// changeSession keeps a decision on a session of a turn. Where something follows, the caller waits until it is in force.
func (t *turn) changeSession(ctx context.Context, organization, id string, decide func(tenants.Session) ([]tenants.Event, error)) (tenants.Session, error) {
	changed := false
	session, version, err := eventstorepg.UpdateTx(ctx, t.tx, t.Events, streamOf(organization, "session", id), t.origin,
		func(s tenants.Session) ([]tenants.Event, error) {
			events, err := decide(s)
			changed = len(events) > 0
			return events, err
		})
	if err == nil && changed {
		t.await(bus.Awaited{Key: session.Digest.Hash, State: stateOf(session), Version: version})
	}
	return session, err
}

func stateOf(session tenants.Session) string {
	if session.Revocation.At.IsZero() {
		return contract.CredentialActive
	}
	return contract.CredentialRevoked
}

// powers is the role in which a request acts: a token's, or a member's own as it is now, whatever their session says.
// ErrRemoved for one who is no member any more.
func (t *turn) powers(ctx context.Context) (tenants.Role, error) {
	if t.request.Role == "" {
		return t.request.Caller.Role(), nil
	}
	member, err := t.views.Member(ctx, pg.Organization(t.request.Caller.Organization), t.request.Caller.ID)
	if errors.Is(err, tenants.ErrNotFound) {
		return "", ErrRemoved
	}
	return member.Role, err
}

// roleOf is the role in which somebody acts now who handed out a code: a member's own, a service token's, and none for who
// was removed or is revoked. Whoever is neither a member nor a token did it at the server, and may do everything.
func (t *turn) roleOf(ctx context.Context, organization, id string) (tenants.Role, error) {
	if strings.HasPrefix(id, memberPrefix) {
		member, err := t.views.Member(ctx, pg.Organization(organization), id)
		if errors.Is(err, tenants.ErrNotFound) {
			return "", nil
		}
		return member.Role, err
	}
	token, err := t.tokenOf(ctx, organization, id)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return tenants.Owner, nil
	case err != nil || token.State() == tenants.Revoked:
		return "", err
	}
	return tenants.Caller{Organization: token.Organization}.Role(), nil
}

// tokenOf returns a service token of an organization, or an operator's, for which the turn leaves the organization for one
// look.
func (t *turn) tokenOf(ctx context.Context, organization, id string) (tenants.ServiceToken, error) {
	token, err := t.views.ServiceToken(ctx, pg.Organization(organization), id)
	if !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	if err := pg.AsSystem(ctx, t.tx); err != nil {
		return token, err
	}
	if token, err = t.views.ServiceToken(ctx, tenants.Installation, id); err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	return token, errors.Join(err, pg.AsOrganization(ctx, t.tx, pg.Organization(organization)))
}

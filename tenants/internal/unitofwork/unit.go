package unitofwork

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
)

// ErrRemoved means that the caller was removed, or that their
// session has ended, which this process has not consumed yet.
var ErrRemoved = errors.New("the caller is no member any more, or has signed out")

// A Unit is one unit of work, committed whole or not at all.
// No other unit is open meanwhile, so it should end soon.
type Unit struct {
	*Writer
	tx       pgx.Tx
	reader   *query.Reader
	request  Request
	appended bool
	awaited  []bus.Awaited // must be in force before Commit returns
}

// Tx is the unit's transaction, for rows beside the events.
func (u *Unit) Tx() pgx.Tx { return u.tx }

// Reader reads in the unit's transaction.
func (u *Unit) Reader() *query.Reader { return u.reader }

// Request is the request of the unit.
func (u *Unit) Request() Request { return u.request }

// As makes a member, who is identified only
// now, the author of the rest of the unit.
func (u *Unit) As(member tenants.Member) { u.request = u.request.By(member) }

// Commit commits the unit, then waits for a while
// until the changed credentials are in force.
func (u *Unit) Commit(ctx context.Context) error {
	watch := u.Waiter.Watch(u.awaited...)
	defer watch.Stop()
	if err := u.CommitNoWait(ctx); err != nil {
		return err
	}
	watch.Wait(ctx)
	return nil
}

// CommitNoWait is Commit without the wait.
func (u *Unit) CommitNoWait(ctx context.Context) error {
	if err := u.tx.Commit(ctx); err != nil {
		return fmt.Errorf("cannot commit: %w", err)
	}
	if u.appended {
		u.Waiter.Wake()
	}
	return nil
}

// Rollback drops the unit, unless it was committed.
func (u *Unit) Rollback(ctx context.Context) { _ = u.tx.Rollback(ctx) }

// Role is the request's role: a token's, or a member's present
// one, whatever their session has. ErrRemoved for a former member.
func (u *Unit) Role(ctx context.Context) (tenants.Role, error) {
	if u.request.Role == "" {
		return u.request.Caller.Role(), nil
	}
	role, err := u.RoleOf(ctx, u.reader, pg.Organization(u.request.Caller.Organization), u.request.Caller.ID)
	if errors.Is(err, tenants.ErrNotFound) {
		return "", ErrRemoved
	}
	return role, err
}

// Require refuses a member whose role lacks a permission now.
// Tokens have scopes instead.
func (u *Unit) Require(ctx context.Context, permission tenants.Permission) error {
	if u.request.Role == "" {
		return nil
	}
	role, err := u.Role(ctx)
	if err != nil {
		return err
	}
	u.request.Role = role
	return Check(role, permission)
}

// Check refuses a role that lacks a permission.
func Check(role tenants.Role, permission tenants.Permission) error {
	if !role.May(permission) {
		return fmt.Errorf("%s as %q: %w", permission, role, tenants.ErrForbidden)
	}
	return nil
}

// append stores events of one stream, whose state is then state.
func (u *Unit) append(ctx context.Context, stream eventstore.Stream, version int64, state any, events []tenants.Event) error {
	if err := u.Events.AppendTx(ctx, u.tx, stream, version, u.request.Metadata(), events...); err != nil {
		return err
	}
	u.appended = u.appended || len(events) > 0
	if holder, holds := state.(tenants.CredentialHolder); holds {
		u.await(holder, published(version, events))
	}
	return nil
}

// published is the version of the last
// event that changes a credential; 0: none.
func published(version int64, events []tenants.Event) (last int64) {
	for i, event := range events {
		if event.Publication() == tenants.PublishedCredential {
			last = version + int64(i) + 1
		}
	}
	return last
}

func (u *Unit) await(holder tenants.CredentialHolder, version int64) {
	if version == 0 {
		return
	}
	for _, credential := range holder.Credentials() {
		state := contract.CredentialActive
		if credential.Revoked {
			state = contract.CredentialRevoked
		}
		u.awaited = append(u.awaited, bus.Awaited{Key: credential.Hash, State: state, Version: version})
	}
}

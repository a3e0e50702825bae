package unitofwork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/httpapi"
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
		if tenants.PublicationOf(event) == tenants.PublishedCredential {
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

// Config is what a Writer needs. All of it is required.
type Config struct {
	Events *Events
	Views  *query.Reader
	Waiter *bus.CredentialWaiter
	Clock  func() time.Time
	IDs    func() string // unique and at most 60 URL-safe characters, sorted by time
	Random io.Reader     // a cryptographic source
	Limits tenants.Limits
	RoleOf RoleOf
	Exists Exists
}

// Exists returns ErrNotFound for an organization that is to be deleted.
type Exists func(ctx context.Context, in *query.Reader, organization pg.Organization) error

// RoleOf finds a member's present role, or ErrNotFound.
type RoleOf func(ctx context.Context, in *query.Reader, organization pg.Organization, member string) (tenants.Role, error)

// A Writer begins units of work. Errors of decisions are those
// of tenants: Invalid, ErrNotFound, ErrForbidden, ErrReused,
// ErrShownOnce; others are failures of its dependencies.
type Writer struct {
	Config
}

// NewWriter returns a writer.
func NewWriter(config Config) *Writer { return &Writer{config} }

// Begin opens a unit of work of one organization, or as tenants.Installation
// of several. The caller defers its Rollback. ErrNotFound if the
// organization is to be deleted, perhaps since the caller read it.
func (w *Writer) Begin(ctx context.Context, organization string, request Request) (*Unit, error) {
	u, err := w.BeginHidden(ctx, organization, request)
	if err != nil || organization == tenants.Installation {
		return u, err
	}
	if err := w.Exists(ctx, u.reader, pg.Organization(organization)); err != nil {
		u.Rollback(ctx)
		return nil, err
	}
	return u, nil
}

// BeginHidden is Begin for decisions about
// the deletion of an organization itself.
func (w *Writer) BeginHidden(ctx context.Context, organization string, request Request) (*Unit, error) {
	tx, err := w.Events.Begin(ctx, organization)
	if err != nil {
		return nil, err
	}
	return &Unit{Writer: w, tx: tx, reader: w.Views.In(tx), request: request}, nil
}

// Join opens a unit of work in the caller's
// transaction. The caller commits it.
func (w *Writer) Join(ctx context.Context, tx pgx.Tx, organization string, request Request) (*Unit, error) {
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return nil, err
	}
	if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
		return nil, err
	}
	return &Unit{Writer: w, tx: tx, reader: w.Views.In(tx), request: request}, nil
}

// Now is the time as the database stores it: UTC, to the microsecond.
func (w *Writer) Now() time.Time { return w.Clock().UTC().Truncate(time.Microsecond) }

// maxClient is how much of a User-Agent is stored, in bytes.
const maxClient = 200

// A Request is a caller, an origin, and the request's
// identity. All of it is stored with the events.
type Request struct {
	Caller         tenants.Caller
	Kind           tenants.ActorKind // empty: a member if there is a role, else a service token
	Role           tenants.Role      // a member's at the time; empty for a service token
	Address        netip.Addr        // of the client; zero: unknown
	Client         string            // the client's User-Agent, of any length and content
	ID             string            // of the request
	IdempotencyKey string            // empty: every request is new

	Devices []tenants.Secret // candidates of the browser, at most tenants.MaxDeviceSecrets
	Device  tenants.Device   // the browser's, for the member who signs in; see Recognize
}

// By is the request of a member who is identified only now.
func (r Request) By(member tenants.Member) Request {
	r.Caller, r.Role = tenants.Caller{ID: member.ID, Organization: member.Organization}, member.Role
	return r
}

// Metadata is what is stored of a request with each of its events.
func (r Request) Metadata() eventstore.Metadata {
	return tenants.Origin{
		Actor: r.Caller.ID, Kind: r.kind(), Role: r.Role, Address: httpapi.AddressText(r.Address), Client: httpapi.ClipUserAgent(r.Client, maxClient),
		Request: r.ID,
	}.Metadata()
}

func (r Request) kind() tenants.ActorKind {
	switch {
	case r.Kind != "":
		return r.Kind
	case r.Role != "":
		return tenants.MemberActor
	}
	return tenants.ServiceTokenActor
}

// AtTheServer is a request of a program with the
// installation's configuration, which may do what an
// operator may. client names the program and its user.
func AtTheServer(client string) Request {
	return Request{
		Caller: tenants.Caller{ID: "command", Organization: tenants.Installation, Scopes: OperatorScopes()},
		Kind:   tenants.ConfigurationActor, Client: client,
	}
}

// AtStart is a request of the installation at its start.
func AtStart() Request {
	return Request{Caller: tenants.Caller{ID: "start", Organization: tenants.Installation}, Kind: tenants.SystemActor}
}

// BySystem is a request of the system itself; part is what decided.
func BySystem(part string) Request {
	return Request{Caller: tenants.Caller{ID: part}, Kind: tenants.SystemActor}
}

// ByConfiguration is a request of the installation's configuration.
func ByConfiguration() Request {
	return Request{Caller: tenants.Caller{ID: "configuration"}, Kind: tenants.ConfigurationActor}
}

// OperatorScopes are the scopes of the configured operator: it
// could issue itself any, so it has all that operators need.
func OperatorScopes() []string {
	return []string{"tenants:admin", "billing:read", "billing:write"}
}

// NewID returns the id of what a request creates in an
// organization. With an idempotency key it is derived from
// that, the caller, the kind and the organization: a repeated
// request finds what it created, without a table of keys.
func (w *Writer) NewID(request Request, prefix, organization string) string {
	if request.IdempotencyKey == "" {
		return prefix + w.IDs()
	}
	scope := strings.Join([]string{request.Caller.ID, prefix, organization, request.IdempotencyKey}, "\n")
	sum := sha256.Sum256([]byte(scope))
	return prefix + hex.EncodeToString(sum[:16])
}

// Draw draws the id and the secret of what
// a request creates in an organization.
func (w *Writer) Draw(request Request, idPrefix, organization, secretPrefix string) (id string, secret tenants.Secret, err error) {
	secret, err = tenants.NewSecret(secretPrefix, w.Random)
	return w.NewID(request, idPrefix, organization), secret, err
}

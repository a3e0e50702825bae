package unitofwork

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
)

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

package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// A Request is who asks for a decision. All of it is kept with the decision.
type Request struct {
	Actor          string // id of the credential
	ID             string
	IdempotencyKey string // empty: every request is a new one
}

// decide has something decided about an organization and returns what answer reads of it then, in one transaction, and under the lock of its books. A
// request whose key was used for the same input is answered as it was; ErrReused where the input was another.
func decide[T any](ctx context.Context, s *Service, organization string, request Request, input any,
	choose func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error),
	answer func(tx pgx.Tx, books *ledger.Books, at time.Time) (T, error)) (made T, err error) {
	err = s.stubbornly(ctx, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return noOrganization(err)
		}
		books, err := s.lock(ctx, tx, organization)
		if err != nil {
			return err
		}
		once, err := newOnce(organization, request, input)
		if err != nil {
			return err
		}
		if known, err := once.load(ctx, tx, &made); err != nil || known {
			return err
		}
		now, err := s.Time(ctx, tx)
		if err != nil {
			return fmt.Errorf("cannot read the clock of the database: %w", err)
		}
		at := books.Organization.NotBefore(now)
		decisions, err := choose(tx, books, at)
		if err != nil {
			return err
		}
		if err := s.book(ctx, tx, books, at, request, decisions); err != nil {
			return err
		}
		if made, err = answer(tx, books, at); err != nil {
			return err
		}
		if err := once.save(ctx, tx, made, at); err != nil {
			return err
		}
		return s.Save(ctx, tx, books.Events)
	})
	return made, err
}

// tries is how often a decision is tried: who makes room for a day may be in the way of others who do.
const tries = 3

// stubbornly runs fn in a transaction once there is a place for it, again where the database asks for it.
func (s *Service) stubbornly(ctx context.Context, fn func(tx pgx.Tx) error) (err error) {
	select {
	case s.Deciders <- struct{}{}:
		defer func() { <-s.Deciders }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for range tries {
		if err = pg.InTx(ctx, s.Writes, fn); err == nil || !pg.IsTransient(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// lock opens the books of an organization that is known and not deleted.
func (s *Service) lock(ctx context.Context, tx pgx.Tx, organization string) (*ledger.Books, error) {
	o, found, err := postgres.LockOrganization(ctx, tx, organization)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books of organization %q: %w", organization, err)
	}
	deleted, err := postgres.IsDeleted(ctx, tx, organization)
	if err == nil && (!found || o.Provisional() || deleted) {
		err = ledger.ErrNoOrganization
	}
	if err != nil {
		return nil, err
	}
	opened, err := s.openWhole(ctx, tx, map[string]ledger.Organization{organization: o})
	return opened[organization], err
}

// openWhole opens all books of organizations that are not closed, with their grants.
func (s *Service) openWhole(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization) (map[string]*ledger.Books, error) {
	books, err := postgres.LoadOpenBooks(ctx, tx, known)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	ids := make([]string, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	grants, err := postgres.LiveGrants(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("cannot read the grants: %w", err)
	}
	return s.openAll(ctx, tx, known, grants, books)
}

// book books decisions about an organization and keeps them.
func (s *Service) book(ctx context.Context, tx pgx.Tx, books *ledger.Books, at time.Time, request Request, decisions []ledger.Decision) error {
	before := books.Organization.Decisions
	for _, decision := range decisions {
		if err := books.Decide(decision, books.DecisionCause(at)); err != nil {
			return err
		}
	}
	if len(decisions) == 0 {
		return nil
	}
	if err := s.saveDecided(ctx, tx, at, map[string]*ledger.Books{books.Organization.ID: books}); err != nil {
		return err
	}
	return s.keep(ctx, tx, books.Organization.ID, before, at, request, decisions)
}

// saveDecided stores the books of organizations about which something was decided, and makes the statements of periods that it closed.
func (s *Service) saveDecided(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books) error {
	for _, books := range opened {
		if err := postgres.SaveOrganization(ctx, tx, books.Organization, books.Due()); err != nil {
			return err
		}
	}
	if err := saveOpened(ctx, tx, at, opened); err != nil {
		return err
	}
	return s.issueStatements(ctx, tx, at, opened)
}

// saveOpened stores opened books, and makes room for their transfers, whenever these count.
func saveOpened(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books) error {
	var days []time.Time
	for _, books := range opened {
		days = append(days, effectiveDays(books.Transfers)...)
	}
	if err := postgres.EnsureDays(ctx, tx, days...); err != nil {
		return fmt.Errorf("cannot make room for transfers: %w", err)
	}
	if err := postgres.SaveBooks(ctx, tx, at, opened, nil); err != nil {
		return fmt.Errorf("cannot write the books: %w", err)
	}
	return nil
}

// keep appends decisions to the stream of their organization, with their instant and the positions of the log that they take effect behind: what of the
// organization's is below was booked before them, for whoever books has the lock of its books.
func (s *Service) keep(ctx context.Context, tx pgx.Tx, organization string, expected int64, at time.Time, request Request,
	decisions []ledger.Decision) error {
	if err := eventstorepg.TakeTurn(ctx, tx); err != nil {
		return err
	}
	positions, err := postgres.Positions(ctx, tx)
	if err != nil {
		return fmt.Errorf("cannot read how far the log is booked: %w", err)
	}
	behind, err := json.Marshal(positions)
	if err != nil {
		return err
	}
	metadata := eventstore.Metadata{
		"actor": request.Actor, "request": request.ID, "positions": string(behind), postgres.DecidedAt: at.UTC().Format(time.RFC3339Nano),
	}
	return s.Decisions.AppendTx(ctx, tx, postgres.Decisions(organization), expected, metadata, decisions...)
}

// once is a request that has an effect once.
type once struct {
	organization string
	key, input   []byte // hashes; nil: every request is a new one
}

func newOnce(organization string, request Request, input any) (once, error) {
	if request.IdempotencyKey == "" {
		return once{}, nil
	}
	text, err := json.Marshal(input)
	if err != nil {
		return once{}, err
	}
	key, hash := sha256.Sum256([]byte(request.IdempotencyKey)), sha256.Sum256(bytes.Join([][]byte{fmt.Appendf(nil, "%T", input), text}, nil))
	return once{organization: organization, key: key[:], input: hash[:]}, nil
}

// load reads what was answered before.
func (o once) load(ctx context.Context, tx pgx.Tx, answer any) (known bool, err error) {
	if o.key == nil {
		return false, nil
	}
	text, err := postgres.LoadAnswer(ctx, tx, o.organization, o.key, o.input)
	if err != nil || text == nil {
		return false, err
	}
	return true, json.Unmarshal(text, answer)
}

func (o once) save(ctx context.Context, tx pgx.Tx, answer any, at time.Time) error {
	if o.key == nil {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return postgres.SaveAnswer(ctx, tx, o.organization, o.key, o.input, text, at)
}

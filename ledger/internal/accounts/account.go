package accounts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// An Account is an organization as those see it who run the installation.
type Account struct {
	balances.Balance
	LastActivity time.Time // the hour of its last request; zero: none that is kept
}

// An AccountQuery selects accounts whose organization's id contains a text, in
// a state, after a place, at most Limit.
type AccountQuery struct {
	Containing string
	State      string // empty: any
	After      string // an organization
	Limit      int
}

// lookedAt is how many accounts one page looks at: few may be in
// the state that is wanted.
const lookedAt = 500

// operators take turns together, like an organization.
const operators = "*"

// List lists accounts of all organizations by their ids. next is the place from
// which the list goes on; empty at its end.
func (s *Service) List(ctx context.Context, query AccountQuery) (found []Account, next string, err error) {
	leave, err := s.Reads.Turns.Enter(ctx, operators)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	err = pg.Snapshot(ctx, s.Reads.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		ids, err := postgres.OrganizationIDs(ctx, tx, query.Containing, query.After, lookedAt+1)
		if err != nil {
			return err
		}
		found, next, err = s.accounts(ctx, tx, query, ids)
		return err
	})
	return found, next, err
}

// accounts reads the accounts of ids until there are enough; one id more
// than lookedAt means that there are more.
func (s *Service) accounts(ctx context.Context, tx pgx.Tx, query AccountQuery, ids []string) (found []Account, next string, err error) {
	last, err := postgres.LastActivity(ctx, tx, ids)
	if err != nil {
		return nil, "", err
	}
	for i, id := range ids {
		if i == lookedAt || len(found) == query.Limit {
			return found, ids[i-1], nil
		}
		balance, err := s.Balances.Running(ctx, tx, pg.Organization(id))
		if errors.Is(err, ledger.ErrNoOrganization) {
			continue // its plan begins later
		}
		if err != nil {
			return nil, "", err
		}
		if query.State == "" || balance.State() == query.State {
			found = append(found, Account{Balance: balance, LastActivity: last[id]})
		}
	}
	return found, "", nil
}

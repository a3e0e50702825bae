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

// An Account is an organization as operators see it.
type Account struct {
	balances.Balance
	LastActivity time.Time // hour of its last request; zero: none is kept
}

// An AccountQuery selects at most Limit accounts in a state whose
// organization's id contains a text, after After.
type AccountQuery struct {
	Containing string
	State      string // empty: any
	After      string // an organization
	Limit      int
}

// scanLimit is how many accounts one page reads: few may be in the queried state.
const scanLimit = 500

// operators take turns together, as one organization does.
const operators = "*"

// List lists accounts of all organizations by id. next is where the
// list continues; empty at its end.
func (s *Service) List(ctx context.Context, query AccountQuery) (found []Account, next string, err error) {
	release, err := s.Reads.Limiter.Acquire(ctx, operators)
	if err != nil {
		return nil, "", err
	}
	defer release()
	err = pg.Snapshot(ctx, s.Reads.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		ids, err := postgres.OrganizationIDs(ctx, tx, query.Containing, query.After, scanLimit+1)
		if err != nil {
			return err
		}
		found, next, err = s.accounts(ctx, tx, query, ids)
		return err
	})
	return found, next, err
}

// accounts reads the accounts of ids until there are enough. One id
// beyond scanLimit means that there are more.
func (s *Service) accounts(ctx context.Context, tx pgx.Tx, query AccountQuery, ids []string) (found []Account, next string, err error) {
	last, err := postgres.LastActivity(ctx, tx, ids)
	if err != nil {
		return nil, "", err
	}
	for i, id := range ids {
		if i == scanLimit || len(found) == query.Limit {
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

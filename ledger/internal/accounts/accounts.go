package accounts

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Service shows the accounts of all organizations to ingest and to operators.
type Service struct {
	Reads    *snapshot.Reader
	Balances *balances.Service
}

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
	err = pg.SnapshotAsSystem(ctx, s.Reads.Pool, func(tx pgx.Tx) error {
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

// A Round holds the changed account states and the positions of the log
// that they count.
type Round struct {
	Accounts []ledger.AccountState
	Deleted  []ledger.AccountState // deleted organizations, to withdraw
	Counted  contract.Positions
}

// NextRound reads the round that is due. tx is a snapshot: Counted is
// correct only if books and positions are of one instant.
func (s *Service) NextRound(ctx context.Context, tx pgx.Tx) (round Round, err error) {
	if round.Counted, err = postgres.Positions(ctx, tx); err != nil {
		return Round{}, err
	}
	due, err := postgres.AllUnpublished(ctx, tx)
	if err != nil {
		return Round{}, err
	}
	err = s.add(ctx, tx, &round, due)
	return round, err
}

// Published reads the states of all accounts that are not due, as they
// were published last.
func (s *Service) Published(ctx context.Context, tx pgx.Tx) (round Round, err error) {
	published, err := postgres.AllPublished(ctx, tx)
	if err != nil {
		return Round{}, err
	}
	err = s.add(ctx, tx, &round, published)
	return round, err
}

// add adds the present states of accounts to a round.
func (s *Service) add(ctx context.Context, tx pgx.Tx, round *Round, accounts []postgres.Unpublished) error {
	budgets, err := s.budgetsOf(ctx, tx, accounts)
	if err != nil {
		return err
	}
	now := s.Reads.Clock()
	for _, d := range accounts {
		if d.Deleted {
			round.Deleted = append(round.Deleted, ledger.AccountState{Organization: d.Organization, Version: d.Version})
			continue
		}
		round.Accounts = append(round.Accounts, ledger.NewAccountState(d.Organization, d.Book, budgets[d.Organization.ID], d.Version, now))
	}
	return nil
}

// budgetsOf reads the organizations' budgets.
func (s *Service) budgetsOf(ctx context.Context, tx pgx.Tx, due []postgres.Unpublished) (map[string][]ledger.Budget, error) {
	var ids []string
	for _, d := range due {
		if d.Organization.Budgets > 0 && !d.Deleted {
			ids = append(ids, d.Organization.ID)
		}
	}
	return postgres.LoadBudgets(ctx, tx, ids)
}

// MarkPublished records the round as published. Later changes stay due.
func (s *Service) MarkPublished(ctx context.Context, tx pgx.Tx, round Round) error {
	return postgres.MarkPublished(ctx, tx, slices.Concat(round.Accounts, round.Deleted))
}

// Repeat makes the states of accounts due, which get new versions.
func (s *Service) Repeat(ctx context.Context, tx pgx.Tx, organizations []string) error {
	return postgres.MarkUnpublished(ctx, tx, organizations...)
}

// Withdraw makes the withdrawal of a deleted organization's account due.
func (s *Service) Withdraw(ctx context.Context, tx pgx.Tx, organization string) error {
	return postgres.MarkUnpublished(ctx, tx, organization)
}

package accounts

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

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

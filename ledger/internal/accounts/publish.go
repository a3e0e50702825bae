package accounts

import (
	"context"
	"fmt"
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
	budgets, err := s.budgetsOf(ctx, tx, due)
	if err != nil {
		return Round{}, err
	}
	now := s.Reads.Clock()
	for _, d := range due {
		if d.Deleted {
			round.Deleted = append(round.Deleted, ledger.AccountState{Organization: d.Organization, Version: d.Version})
			continue
		}
		state, err := s.Tiers.AccountState(d.Organization, d.Book, budgets[d.Organization.ID], d.Version, now)
		if err != nil {
			return Round{}, fmt.Errorf("cannot publish an account: %w", err)
		}
		round.Accounts = append(round.Accounts, state)
	}
	return round, nil
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

// Withdraw makes the withdrawal of a deleted organization's account due.
func (s *Service) Withdraw(ctx context.Context, tx pgx.Tx, organization string) error {
	return postgres.MarkUnpublished(ctx, tx, organization)
}

// RepublishOnNewTerms makes every account due if the tiers' terms have
// changed since the last time.
func (s *Service) RepublishOnNewTerms(ctx context.Context, tx pgx.Tx) error {
	changed, err := postgres.SaveTerms(ctx, tx, s.Tiers)
	if err != nil || !changed {
		return err
	}
	return postgres.MarkAllUnpublished(ctx, tx)
}

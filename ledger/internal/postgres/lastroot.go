package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// CheckLastRoot compares the root of the last sealed hour with that of
// the current chains.
func CheckLastRoot(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	var s seal
	err := tx.QueryRow(ctx, `SELECT `+sealColumns+` FROM seals WHERE root IS NOT NULL ORDER BY hour DESC LIMIT 1`).Scan(s.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	root, err := rootOfChains(ctx, tx)
	if err != nil {
		return nil, err
	}
	if sum := s.sum(root); !slices.Equal(sum[:], s.root) || root.Organizations != s.organizations {
		return []ledger.Violation{{Invariant: ledger.RootIsChains, Detail: fmt.Sprintf("hour %s: the root of %d chains is %x, that of the %d that there are %x",
			s.hour.UTC().Format(time.RFC3339), s.organizations, s.root, root.Organizations, sum)}}, nil
	}
	return nil, nil
}

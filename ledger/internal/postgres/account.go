package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// queueUnpublished notes that the organizations' states have changed. The version is drawn while the organization is
// locked, so a later state always has a higher one.
func queueUnpublished(batch *pgx.Batch, organizations []string) {
	batch.Queue(`INSERT INTO unpublished (organization, version)
		SELECT id, nextval('versions') FROM unnest($1::text[]) AS id
		ON CONFLICT (organization) DO UPDATE SET version = excluded.version`, organizations)
}

// A Round is what one snapshot of the database has to say on weir.accounts.v1: the accounts that changed since they were
// published, and through which positions of weir.logs.v1 all accounts are counted.
type Round struct {
	Accounts []contract.Account
	Counted  contract.Positions
}

// NextRound reads the round that is due. tx has to be a snapshot (see pg.Snapshot): books and positions are from the same
// instant, which is what makes Counted true.
func (s *Store) NextRound(ctx context.Context, tx pgx.Tx) (Round, error) {
	counted, err := Positions(ctx, tx)
	if err != nil {
		return Round{}, err
	}
	rows, err := tx.Query(ctx, `SELECT u.version, o.anchor_day, o.plans, o.suspended, b.*
		FROM unpublished u JOIN organizations o USING (organization)
		CROSS JOIN LATERAL (SELECT `+bookColumns+` FROM books
			WHERE organization = u.organization ORDER BY period_start DESC LIMIT 1) b`)
	if err != nil {
		return Round{}, err
	}
	round := Round{Counted: counted}
	var version int64
	var o ledger.Organization
	var plans []byte
	var b orgBook
	_, err = pgx.ForEachRow(rows, append([]any{&version, &o.AnchorDay, &plans, &o.Suspended}, b.fields()...), func() error {
		if o.Plans, err = parsePlans(plans); err != nil {
			return err
		}
		o.ID = b.organization
		account, err := s.account(o, b.book, version, counted)
		round.Accounts = append(round.Accounts, account)
		return err
	})
	return round, err
}

// account is an organization's state as others see it.
func (s *Store) account(o ledger.Organization, book ledger.Book, version int64, counted contract.Positions) (contract.Account, error) {
	now, err := s.Tiers.Terms(o.Plans.At(s.Clock()))
	if err != nil {
		return contract.Account{}, fmt.Errorf("cannot publish organization %q: %w", o.ID, err)
	}
	next, err := s.Tiers.Terms(o.Plans.At(book.Period.End))
	if err != nil {
		return contract.Account{}, fmt.Errorf("cannot publish organization %q: %w", o.ID, err)
	}
	return contract.Account{
		Organization: o.ID, Tier: string(o.Plans.At(s.Clock())), RequestsPerMinute: now.RequestsPerMinute,
		AnchorDay: o.AnchorDay, PeriodStart: book.Period.Start.UTC(), PeriodEnd: book.Period.End.UTC(),
		Quota: book.Granted(), NextQuota: next.Quota, Used: book.Used(),
		State: o.State(book), Counted: counted, Version: version,
	}, nil
}

// MarkPublished notes that the round is out. What has changed since its snapshot stays due.
func (s *Store) MarkPublished(ctx context.Context, tx pgx.Tx, round Round) error {
	ids, versions := make([]string, len(round.Accounts)), make([]int64, len(round.Accounts))
	for i, account := range round.Accounts {
		ids[i], versions[i] = account.Organization, account.Version
	}
	_, err := tx.Exec(ctx, `DELETE FROM unpublished u USING unnest($1::text[], $2::bigint[]) AS done (organization, version)
		WHERE u.organization = done.organization AND u.version = done.version`, ids, versions)
	return err
}

// RepublishOnNewTerms makes every account due when the terms of the tiers are not those of the last time.
func (s *Store) RepublishOnNewTerms(ctx context.Context, tx pgx.Tx) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	terms, err := json.Marshal(s.Tiers)
	if err != nil {
		return err
	}
	changed, err := tx.Exec(ctx, `INSERT INTO published_terms AS p (terms) VALUES ($1)
		ON CONFLICT (one_row) DO UPDATE SET terms = excluded.terms WHERE p.terms <> excluded.terms`, terms)
	if err != nil || changed.RowsAffected() == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO unpublished (organization, version)
		SELECT organization, nextval('versions')
		FROM (SELECT organization FROM organizations WHERE plans <> '[]' ORDER BY organization FOR NO KEY UPDATE) AS locked
		ON CONFLICT (organization) DO UPDATE SET version = excluded.version`)
	return err
}

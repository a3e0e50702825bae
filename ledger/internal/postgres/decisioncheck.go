package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// CheckDecisions compares each decision about an organization with the one
// before, and the statements that it names with those kept. Decisions and
// statements older than since may be gone.
func CheckDecisions(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	return checkDecided(ctx, tx, `organization = $1`, since, organization)
}

// verifyDecisions compares those of all organizations.
func verifyDecisions(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return checkDecided(ctx, tx, `true`, since)
}

// A statementPlace is a statement's place in its organization.
type statementPlace struct {
	organization string
	number       int64
}

func checkDecided(ctx context.Context, tx pgx.Tx, which string, since time.Time, args ...any) ([]ledger.Violation, error) {
	violations, stated, err := checkStatementHashes(ctx, tx, which, since, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot check the chain of statements: %w", err)
	}
	rows, err := tx.Query(ctx, `SELECT organization, position, `+decidedColumns+`, (SELECT opened_at FROM organizations o WHERE o.organization = e.organization)
		FROM events e WHERE `+which+` AND stream = '`+decisionStream+`'
		ORDER BY organization COLLATE "C", version`, args...)
	if err != nil {
		return nil, err
	}
	check := decisionCheck{since: since, stated: stated}
	var chained *string
	var opened *time.Time
	d := &check.next
	columns := []any{&check.organization, &check.position, &d.Number, &d.Name, &d.Data, &d.Metadata, &d.erased, &d.deleted, &d.at, &chained, &opened}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		d.chained, check.opened = Chained{}, timeOf(opened)
		if chained != nil {
			if err := d.chained.parse(*chained); err != nil {
				return err
			}
		}
		check.compare()
		return nil
	})
	return append(violations, check.violations...), err
}

// checkStatementHashes compares each statement with its hash and with the
// one before, and returns their hashes.
func checkStatementHashes(ctx context.Context, tx pgx.Tx, which string, since time.Time, args ...any) (
	violations []ledger.Violation, hashes map[statementPlace]ledger.Hash, err error) {
	rows, err := tx.Query(ctx, `SELECT `+statementColumns+`, document FROM statements WHERE `+which+` ORDER BY organization COLLATE "C", number`, args...)
	if err != nil {
		return nil, nil, err
	}
	var before ledger.Statement
	hashes = map[statementPlace]ledger.Hash{}
	for rows.Next() {
		s, err := scanStatement(rows)
		if err != nil {
			return nil, nil, err
		}
		sealed, err := sealStatement(s)
		if err != nil {
			return nil, nil, err
		}
		if what := followsStatement(before, s, sealed.Hash, since); what != "" {
			violations = append(violations, ledger.Violation{Invariant: ledger.StatementsFollow, Detail: fmt.Sprintf(
				"organization %q, statement %d: %s", s.Organization, s.Number, what)})
		}
		before, hashes[statementPlace{s.Organization, s.Number}] = s, s.Hash
	}
	return violations, hashes, rows.Err()
}

// followsStatement returns how a statement does not follow the one before.
func followsStatement(before, s ledger.Statement, hash ledger.Hash, since time.Time) string {
	none := ledger.Hash{}
	switch {
	case s.Hash != hash && (s.Hash != none || s.Previous != none): // else older than the chain of statements
		return fmt.Sprintf("its hash is %x, that of its content %x", s.Hash, hash)
	case before.Organization != s.Organization && s.Number > 1 && !s.Period.Start.Before(since):
		return "those before it are gone"
	case before.Organization == s.Organization && (before.Number != s.Number-1 || before.Hash != s.Previous),
		s.Number == 1 && s.Previous != none:
		return "it does not follow the one before"
	}
	return ""
}

// A decisionCheck compares decisions in order.
type decisionCheck struct {
	since        time.Time
	stated       map[statementPlace]ledger.Hash
	organization string
	position     int64     // in the order of all decisions
	opened       time.Time // zero: there is no such organization
	next         decidedRow

	of         string // the organization of the one before
	after      int64  // position of that
	before     decidedRow
	violations []ledger.Violation
}

func (c *decisionCheck) compare() {
	if what := c.differs(); what != "" {
		c.violations = append(c.violations, ledger.Violation{Invariant: ledger.DecisionsFollow, Detail: fmt.Sprintf(
			"organization %q, decision %d: %s", c.organization, c.next.Number, what)})
	}
	if hash, kept := c.stated[statementPlace{c.organization, c.next.chained.Statements}]; kept && hash != c.next.chained.Stated {
		c.violations = append(c.violations, ledger.Violation{Invariant: ledger.StatementsFollow, Detail: fmt.Sprintf(
			"organization %q, statement %d: its hash is %x, by decision %d it was %x",
			c.organization, c.next.chained.Statements, hash, c.next.Number, c.next.chained.Stated)})
	}
	c.of, c.after, c.before = c.organization, c.position, c.next
}

// differs returns how a decision does not follow the one before.
func (c *decisionCheck) differs() string {
	d, before, after := c.next, c.before, c.after
	if c.of != c.organization {
		before, after = decidedRow{at: c.opened}, 0
	}
	switch {
	case c.opened.IsZero():
		return "there is no such organization"
	case c.position <= after:
		return fmt.Sprintf("its place %d among all decisions is before that of the one before, %d", c.position, after)
	case d.erased && !d.deleted:
		return "its content is gone, and the organization is not deleted"
	case d.erased || before.erased:
		return ""
	case d.Number != before.Number+1 && before.at.Before(c.since): // those between may be gone
		return ""
	case d.Number != before.Number+1:
		return fmt.Sprintf("it follows number %d", before.Number)
	case d.chained.Previous != c.headBefore():
		return fmt.Sprintf("it follows %x, and the one before is %x", d.chained.Previous, c.headBefore())
	case before.chained != Chained{} && d.chained.Before != before.chained.After:
		return "the organization was changed without a decision before it"
	}
	return ""
}

// headBefore returns the head that a decision follows: zero for the
// first, and after those older than the chain.
func (c *decisionCheck) headBefore() ledger.Hash {
	if c.of == c.organization && c.before.chained != (Chained{}) {
		return c.before.Hash()
	}
	return ledger.Hash{}
}

// verifyDecided compares all organizations with their decisions, and these
// with each other.
func verifyDecided(ctx context.Context, tx pgx.Tx, since, now time.Time) (violations []ledger.Violation, err error) {
	if violations, err = verifyDecisions(ctx, tx, since); err != nil {
		return nil, err
	}
	for after := ""; ; {
		found, last, err := CheckStandings(ctx, tx, after, since, now)
		if err != nil {
			return nil, err
		}
		if last == "" {
			break
		}
		violations, after = append(violations, found...), last
	}
	grants, err := checkGrantDecisions(ctx, tx, `true`, since, now)
	return append(violations, grants...), err
}

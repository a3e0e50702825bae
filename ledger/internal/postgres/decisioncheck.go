package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// A statementPlace is a statement's place in its organization.
type statementPlace struct {
	organization string
	number       int64
}

// CheckDecisions compares each decision about an organization, or Everyone,
// with the one before, and the statements that it names with those kept.
// Decisions and statements older than since may be gone.
func CheckDecisions(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	which, args := scope(organization, "organization")
	violations, stated, err := checkStatementHashes(ctx, tx, which, since, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot check the chain of statements: %w", err)
	}
	rows, _ := tx.Query(ctx, `SELECT organization, position, `+decidedColumns+`, (SELECT opened_at FROM organizations o WHERE o.organization = e.organization)
		FROM events e WHERE `+which+` AND stream = '`+decisionStream+`'
		ORDER BY organization COLLATE "C", version`, args...)
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
	rows, _ := tx.Query(ctx, `SELECT `+statementColumns+`, document FROM statements WHERE `+which+` ORDER BY organization COLLATE "C", number`, args...)
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
	if violations, err = CheckDecisions(ctx, tx, Everyone, since); err != nil {
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
	grants, err := CheckGrantDecisions(ctx, tx, Everyone, since, now)
	return append(violations, grants...), err
}

// A standing is an organization with its last decision and statement.
type standing struct {
	organization ledger.Organization
	due          time.Time
	terms        int64      // version of the rules that it follows
	last         decidedRow // number 0: nothing was decided
	statements   int64      // number of the last; 0: none is kept
	stated       ledger.Hash
	grants       []ledger.Grant // live ones
	budgets      []ledger.Budget
}

// decidedRow is a decision as it is stored.
type decidedRow struct {
	ledger.LinkedDecision
	erased  bool // its content
	deleted bool // its organization
	at      time.Time
	chained Chained
}

const decidedColumns = `e.version, e.name, e.data::text, e.metadata::text, NOT (` + notErased + `), ` + isDeleted + `, ` + decidedAt + `,
	e.metadata ->> '` + ChainedBy + `'`

// isDeleted is the condition for events whose content may be erased.
const isDeleted = `EXISTS (SELECT FROM erasures d WHERE d.organization = e.organization AND d.project = '')`

// standingPage is how many organizations are compared together.
const standingPage = 500

// CheckStandings compares organizations after one, in order, with what
// their last decisions and statements made of them, and live grants with
// the decisions that made them; before the first page, the terms. last is the last of the page; empty: there
// is none. Decisions and statements older than since may be gone.
func CheckStandings(ctx context.Context, tx pgx.Tx, after string, since, now time.Time) (violations []ledger.Violation, last string, err error) {
	if after == "" {
		if violations, err = checkTerms(ctx, tx); err != nil {
			return nil, "", err
		}
	}
	all, err := loadStandings(ctx, tx, `o.organization COLLATE "C" > $1 ORDER BY o.organization COLLATE "C" LIMIT $2`, after, standingPage)
	if err != nil {
		return nil, "", err
	}
	rules, err := LoadRules(ctx, tx)
	if err != nil {
		return nil, "", err
	}
	var live []ownedGrant
	for _, s := range all {
		violations, last = append(violations, s.check(rules, since)...), s.organization.ID
		for _, g := range s.grantsKept() {
			live = append(live, ownedGrant{last, g})
		}
	}
	ofGrants, err := compareGrantDecisions(ctx, tx, live, since, now)
	return append(violations, ofGrants...), last, err
}

// CheckStanding is CheckStandings for one organization.
func CheckStanding(ctx context.Context, tx pgx.Tx, organization string, since time.Time) (violations []ledger.Violation, err error) {
	rules, err := LoadRules(ctx, tx)
	if err != nil {
		return nil, err
	}
	all, err := loadStandings(ctx, tx, `o.organization = $1`, organization)
	for _, s := range all {
		violations = append(violations, s.check(rules, since)...)
	}
	return violations, err
}

func loadStandings(ctx context.Context, tx pgx.Tx, which string, args ...any) ([]standing, error) {
	rows, _ := tx.Query(ctx, `SELECT `+organizationColumns+`, o.due_at, o.terms, last.*, coalesce(s.number, 0), s.hash FROM organizations o
		LEFT JOIN LATERAL (SELECT `+decidedColumns+` FROM events e WHERE e.organization = o.organization AND e.stream = '`+decisionStream+`'
			ORDER BY e.version DESC LIMIT 1) last ON true
		LEFT JOIN LATERAL (SELECT number, hash FROM statements WHERE organization = o.organization ORDER BY number DESC LIMIT 1) s ON true
		WHERE `+which, args...)
	all, err := pgx.CollectRows(rows, scanStanding)
	if err != nil {
		return nil, err
	}
	return all, fillStandings(ctx, tx, all)
}

func scanStanding(row pgx.CollectableRow) (s standing, err error) {
	var o organizationRow
	var due, at *time.Time
	var number *int64
	var name, data, metadata, chained *string
	var erased, deleted *bool
	var stated []byte
	fields := append(o.fields(), &due, &s.terms, &number, &name, &data, &metadata, &erased, &deleted, &at, &chained, &s.statements, &stated)
	if err := row.Scan(fields...); err != nil {
		return s, err
	}
	s.due, s.stated = timeOf(due), hashOf(stated)
	if number != nil {
		s.last = decidedRow{
			LinkedDecision: ledger.LinkedDecision{Number: *number, Name: *name, Data: *data, Metadata: *metadata}, erased: *erased, deleted: *deleted, at: timeOf(at),
		}
	}
	s.organization = o.organization()
	if chained != nil {
		err = s.last.chained.parse(*chained)
	}
	return s, err
}

// fillStandings reads what belongs to standings beside the organization.
func fillStandings(ctx context.Context, tx pgx.Tx, all []standing) error {
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].organization.ID
	}
	grants, err := LiveGrants(ctx, tx, ids)
	if err != nil {
		return err
	}
	budgets, err := LoadBudgets(ctx, tx, ids)
	for i := range all {
		all[i].grants, all[i].budgets = grants[ids[i]], budgets[ids[i]]
	}
	return err
}

// grantsKept returns the live grants, none of a deleted organization.
func (s standing) grantsKept() []ledger.Grant {
	if s.last.deleted {
		return nil
	}
	return s.grants
}

// check compares an organization with its last decision. A deleted one
// has nothing to compare, and a provisional one only its head.
func (s standing) check(rules ledger.Rules, since time.Time) (violations []ledger.Violation) {
	if s.last.erased && s.last.deleted {
		return nil
	}
	o, now := s.organization, ledger.StandingOf(s.organization, s.budgets)
	differs := func(invariant, what string) {
		violations = append(violations, ledger.Violation{Invariant: invariant, Detail: fmt.Sprintf("organization %q, decision %d: %s", o.ID, s.last.Number, what)})
	}
	head, after := s.last.Hash(), s.last.chained.After
	if o.Head == (ledger.Hash{}) && s.last.chained == (Chained{}) { // provisional, or older than the chain
		head, after = o.Head, now
	}
	switch {
	case o.Decisions != s.last.Number:
		differs(ledger.DecisionsFollow, fmt.Sprintf("it is the last, and the organization has %d", o.Decisions))
	case o.Head != head:
		differs(ledger.DecisionsFollow, fmt.Sprintf("its hash is %x, and the organization has %x", head, o.Head))
	case !o.DecidedAt.Equal(s.last.at):
		differs(ledger.DecisionsFollow, fmt.Sprintf("it is of %s, and the organization has %s", s.last.at, o.DecidedAt))
	}
	if now != after {
		differs(ledger.StandingIsDecided, "plans, suspension, closed periods, thresholds, anchors, test clock or budgets are not as it left them")
	}
	if due := ledger.OpenBooks(o, s.grants).Due(); due.IsZero() != s.due.IsZero() || s.due.After(due) {
		differs(ledger.StandingIsDecided, fmt.Sprintf("what is due at %s is noted for %s", due, s.due))
	}
	switch {
	case s.terms > rules.Version:
		differs(ledger.StandingIsDecided, fmt.Sprintf("it follows version %d of the rules, and version %d is the last", s.terms, rules.Version))
	case s.terms > 0 && s.terms == rules.Version && !rules.FollowedBy(o):
		differs(ledger.TermsAreRecorded, fmt.Sprintf("it follows version %d of the rules, and was decided to follow others", s.terms))
	}
	return append(violations, s.checkStatements(since)...)
}

// checkStatements compares the last statement with the organization and
// its last decision. It may be gone once its period is older than since.
func (s standing) checkStatements(since time.Time) []ledger.Violation {
	o, chained := s.organization, s.last.chained
	gone := s.statements == 0 && o.ClosedThrough.Before(since)
	if none := (ledger.Hash{}); o.Stated == none && chained.Stated == none && s.stated == none {
		return nil // none, or older than their chain
	}
	if o.Statements == chained.Statements && o.Stated == chained.Stated && (gone || s.statements == o.Statements && s.stated == o.Stated) {
		return nil
	}
	return []ledger.Violation{{Invariant: ledger.StatementsFollow, Detail: fmt.Sprintf(
		"organization %q: the last statement is %d with the hash %x, by the organization %d with %x, by decision %d it was %d with %x",
		o.ID, s.statements, s.stated, o.Statements, o.Stated, s.last.Number, chained.Statements, chained.Stated)}}
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// Bounds of what a RuleBook remembers.
const (
	maxHistories = 10_000 // projects
	maxRulesets  = 256    // versions of rules, ready to be applied
)

// A RuleBook reads the rules of projects once for each version,
// for all transactions. It is safe for concurrent use.
type RuleBook struct {
	mu        sync.Mutex
	histories map[Project]grouping.RuleHistory // bounded by maxHistories
	sets      map[ruleKey]*grouping.Ruleset    // bounded by maxRulesets
}

type ruleKey struct {
	Project
	version int64
}

// NewRuleBook returns an empty book.
func NewRuleBook() *RuleBook {
	return &RuleBook{histories: map[Project]grouping.RuleHistory{}, sets: map[ruleKey]*grouping.Ruleset{}}
}

// history is that of a project whose newest version is known.
func (b *RuleBook) history(ctx context.Context, tx pgx.Tx, of Project, newest int64) (grouping.RuleHistory, error) {
	b.mu.Lock()
	known := b.histories[of]
	b.mu.Unlock()
	if n := len(known); n > 0 && known[n-1].Version == newest {
		return known, nil
	}
	rows, err := tx.Query(ctx, `SELECT version, (data->>'since')::timestamptz FROM events WHERE organization = $1 AND stream = $2 AND version <= $3
		AND name = '`+eventVersion+rulesSet+`' ORDER BY version`, of.Organization, rulesStream+of.Name, newest)
	if err != nil {
		return nil, err
	}
	read, err := pgx.CollectRows(rows, pgx.RowToStructByPos[grouping.RuleVersion])
	if err != nil {
		return nil, fmt.Errorf("cannot read the history of rules: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.histories) >= maxHistories {
		clear(b.histories)
	}
	b.histories[of] = read
	return read, nil
}

// set is a version, which holds nothing where its number is 0.
func (b *RuleBook) set(ctx context.Context, tx pgx.Tx, of Project, version int64) (*grouping.Ruleset, error) {
	if version == 0 {
		return nil, nil //nolint:nilnil // there were no rules
	}
	key := ruleKey{of, version}
	b.mu.Lock()
	known := b.sets[key]
	b.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var text string
	err := tx.QueryRow(ctx, `SELECT data->>'text' FROM events WHERE organization = $1 AND stream = $2 AND version = $3 AND name = '`+eventVersion+rulesSet+`'`,
		of.Organization, rulesStream+of.Name, version).Scan(&text)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("cannot read version %d of rules: %w", version, err)
	}
	read := grouping.ReadRules(version, text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sets) >= maxRulesets {
		clear(b.sets)
	}
	b.sets[key] = read
	return read, nil
}

// At are the rules of a project for errors that were accepted at a time,
// by what was learned of it; nil: none. tx must see the project.
func (b *RuleBook) At(ctx context.Context, tx pgx.Tx, of Project, learned grouping.Learned, accepted time.Time) (*grouping.Ruleset, error) {
	if learned.Newest == 0 {
		return nil, nil //nolint:nilnil // the project has no rules
	}
	history, err := b.history(ctx, tx, of, learned.Newest)
	if err != nil {
		return nil, err
	}
	return b.set(ctx, tx, of, history.At(accepted))
}

// former are the rules before those that hold for an error.
func (b *RuleBook) former(ctx context.Context, tx pgx.Tx, of Project, learned grouping.Learned, accepted time.Time) (sets []*grouping.Ruleset, err error) {
	history, err := b.history(ctx, tx, of, learned.Newest)
	if err != nil {
		return nil, err
	}
	for _, version := range history.Former(learned.Rules.Version, accepted) {
		set, err := b.set(ctx, tx, of, version)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

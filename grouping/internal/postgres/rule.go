package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
)

// rulesStream begins the name of the stream of a project's rules, and
// rulesSet is its only event. Both are stored.
const (
	rulesStream = "rules/"
	rulesSet    = "rules_set"
)

// ErrNoRules means that there is no such version of a project's rules.
var ErrNoRules = errors.New("no such version of rules")

// Rules are a version of the rules of a project. Its number is 0 as long as nobody has set any.
type Rules struct {
	Version int64
	grouping.RulesSet
	By Author
}

func ruleEvents() *eventstorepg.Store[grouping.RulesSet] {
	return eventstorepg.New(nil, eventstore.Codec[grouping.RulesSet]{
		Encode: func(s grouping.RulesSet) (string, []byte, error) {
			data, err := json.Marshal(s)
			return eventVersion + rulesSet, data, err
		},
		Decode: func(name string, data []byte) (s grouping.RulesSet, err error) {
			if name != eventVersion+rulesSet {
				return s, fmt.Errorf("the event %q is unknown", name)
			}
			return s, json.Unmarshal(data, &s)
		},
	}, nil)
}

// LockRules lets one transaction at a time change the rules of a project,
// and returns the newest. tx must act as the organization.
func LockRules(ctx context.Context, tx pgx.Tx, of Project) (Rules, error) {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('weir error rules'), hashtext($1 || ' ' || $2))`, of.Organization, of.Name)
	if err != nil {
		return Rules{}, err
	}
	return FindRules(ctx, tx, of)
}

// SaveRules adds a version. They hold from a time on, asked for at the end, so
// tx must soon be committed. The lock of LockRules must be held. The last
// grouping.MaxRuleVersions are kept.
func SaveRules(ctx context.Context, tx pgx.Tx, of Project, last int64, set grouping.RulesSet, by Author, since func() time.Time) (Rules, error) {
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return Rules{}, err
	}
	stream := eventstore.Stream{Organization: of.Organization, Name: rulesStream + of.Name}
	set.Since = since()
	if err := ruleEvents().AppendTx(ctx, tx, stream, last, by.metadata(), set); err != nil {
		return Rules{}, err
	}
	_, err := tx.Exec(ctx, `DELETE FROM events WHERE organization = $1 AND stream = $2 AND version <= $3`,
		of.Organization, stream.Name, last+1-grouping.MaxRuleVersions)
	return Rules{last + 1, set, by}, err
}

const selectRules = `SELECT version, data, coalesce(metadata->>'` + metaActor + `', ''), coalesce(metadata->>'` + metaName + `', '')
	FROM events WHERE organization = $1 AND stream = $2 AND name = '` + eventVersion + rulesSet + `' `

func (r *Rules) fields() []any { return []any{&r.Version, &r.RulesSet, &r.By.ID, &r.By.Name} }

// FindRules finds the newest rules of a project. tx must act as the organization.
func FindRules(ctx context.Context, tx pgx.Tx, of Project) (r Rules, err error) {
	err = tx.QueryRow(ctx, selectRules+`ORDER BY version DESC LIMIT 1`, of.Organization, rulesStream+of.Name).Scan(r.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Rules{}, nil
	}
	return r, err
}

// FindRulesVersion finds a version. tx must act as the organization.
func FindRulesVersion(ctx context.Context, tx pgx.Tx, of Project, version int64) (r Rules, err error) {
	err = tx.QueryRow(ctx, selectRules+`AND version = $3`, of.Organization, rulesStream+of.Name, version).Scan(r.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRules
	}
	return r, err
}

// FindRulesVersions lists versions, the newest first: at most limit of those
// before a number. tx must act as the organization.
func FindRulesVersions(ctx context.Context, tx pgx.Tx, of Project, before int64, limit int) ([]Rules, error) {
	rows, err := tx.Query(ctx, selectRules+`AND version < $3 ORDER BY version DESC LIMIT $4`, of.Organization, rulesStream+of.Name, before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Rules, err error) { return r, row.Scan(r.fields()...) })
}

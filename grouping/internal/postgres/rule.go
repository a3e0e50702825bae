package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/ruletext"
)

// rulesStream begins the name of the stream of a project's rules, and
// rulesSet is its only event. Both are stored.
const (
	rulesStream = "rules/"
	rulesSet    = "rules_set"
)

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

// LockRules lets one transaction at a time change the rules of a project.
// tx must act as the organization.
func LockRules(ctx context.Context, tx pgx.Tx, of Project) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('weir error rules'), hashtext($1 || ' ' || $2))`, of.Organization, of.Name)
	return err
}

// SaveRules adds a version, the next one, which was set at a time. It holds from At on, which is
// asked for at the end, so tx must soon be committed. The lock of LockRules must be
// held. The newest ruletext.MaxVersions are kept.
func SaveRules(ctx context.Context, tx pgx.Tx, of Project, v ruletext.Version, set time.Time, by Author, since func() time.Time) (ruletext.Version, error) {
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return v, err
	}
	stream := eventstore.Stream{Organization: of.Organization, Name: rulesStream + of.Name}
	v.At, v.By, v.ByName = since(), by.ID, by.Name
	event := grouping.RulesSet{At: set, Since: v.At, Text: v.Text, Note: v.Note, Restored: v.Restored}
	if err := ruleEvents().AppendTx(ctx, tx, stream, v.Number-1, by.metadata(), event); err != nil {
		return v, err
	}
	_, err := tx.Exec(ctx, `DELETE FROM events WHERE organization = $1 AND stream = $2 AND version <= $3`,
		of.Organization, stream.Name, v.Number-ruletext.MaxVersions)
	return v, err
}

// RuleVersions lists versions, the newest first: at most limit of those
// before a number. tx must act as the organization.
func RuleVersions(ctx context.Context, tx pgx.Tx, of Project, before int64, limit int) ([]ruletext.Version, error) {
	rows, err := tx.Query(ctx, `SELECT version, data, coalesce(metadata->>'`+metaActor+`', ''), coalesce(metadata->>'`+metaName+`', '')
		FROM events WHERE organization = $1 AND stream = $2 AND name = '`+eventVersion+rulesSet+`' AND version < $3 ORDER BY version DESC LIMIT $4`,
		of.Organization, rulesStream+of.Name, before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v ruletext.Version, err error) {
		var set grouping.RulesSet
		err = row.Scan(&v.Number, &set, &v.By, &v.ByName)
		v.At, v.Text, v.Note, v.Restored = set.Since, set.Text, set.Note, set.Restored
		return v, err
	})
}

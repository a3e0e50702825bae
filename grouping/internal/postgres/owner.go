package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// OwnerRules are the rules of a project about who looks after new groups.
type OwnerRules struct {
	Since time.Time // for groups whose first error was accepted from then on
	Rules grouping.Owners
	By    string // id of the member or API key
}

// maxOwners is how many versions of a project's rules are kept.
const maxOwners = 20

// FindOwners returns the versions of the rules of projects, the earliest first. If
// they are to be applied, members are not removed from them before tx ends.
func FindOwners(ctx context.Context, tx pgx.Tx, projects []Project, toApply bool) (map[Project][]OwnerRules, error) {
	organizations, names := projectColumns(distinct(projects))
	query := `SELECT organization, project, since, rules, actor FROM error_owners
		WHERE (organization, project) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY organization, project, since`
	if toApply {
		query += ` FOR SHARE`
	}
	rows, err := tx.Query(ctx, query, organizations, names)
	if err != nil {
		return nil, err
	}
	all := map[Project][]OwnerRules{} // bounded by the projects of a transaction
	var of Project
	var o OwnerRules
	_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Name, &o.Since, &o.Rules, &o.By}, func() error {
		all[of] = append(all[of], o)
		o = OwnerRules{}
		return nil
	})
	return all, err
}

// SaveOwners adds a version of a project's rules. tx must act as the organization.
func SaveOwners(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string, o OwnerRules) error {
	rules, err := json.Marshal(append(grouping.Owners{}, o.Rules...))
	if err != nil {
		return fmt.Errorf("cannot encode rules: %w", err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO error_owners (organization, project, since, rules, actor) VALUES ($1, $2, $3, $4, $5)`,
		organization, project, o.Since, rules, o.By); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM error_owners WHERE organization = $1 AND project = $2 AND since < (SELECT min(since) FROM
		(SELECT since FROM error_owners WHERE organization = $1 AND project = $2 ORDER BY since DESC LIMIT $3) kept)`, organization, project, maxOwners)
	return err
}

// ForgetOwners takes the rules of members who were removed out of all projects. tx must act as the system.
func ForgetOwners(ctx context.Context, tx pgx.Tx, removed []RemovedMember) error {
	const ofMember = `organization = $1 AND rules @> jsonb_build_array(jsonb_build_object('assignee', $2::text))`
	organizations, members := keysOf(removed)
	_, err := tx.Exec(ctx, `SELECT FROM error_owners o WHERE EXISTS (SELECT FROM unnest($1::text[], $2::text[]) AS k (organization, member)
		WHERE k.organization = o.organization AND o.rules @> jsonb_build_array(jsonb_build_object('assignee', k.member)))
		ORDER BY organization, project, since FOR UPDATE`, organizations, members) // in the order of those who apply them
	for i, organization := range organizations {
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE error_owners SET rules = coalesce((SELECT jsonb_agg(rule ORDER BY n) FROM jsonb_array_elements(rules)
				WITH ORDINALITY AS r (rule, n) WHERE rule->>'assignee' <> $2), '[]') WHERE `+ofMember, organization, members[i])
		}
	}
	return err
}

// findOwned finds who looks after groups that are about to be created, unless
// there are decisions about them from before.
func findOwned(ctx context.Context, tx pgx.Tx, changes []*change, restored []eventstore.Stream) error {
	var created []*change
	var projects []Project
	for _, ch := range changes {
		known := slices.Contains(restored, streamOf(ch.Organization, ch.group))
		if ch.created && !known && !ch.Overflowed() {
			created, projects = append(created, ch), append(projects, Project{ch.Organization, ch.Project})
		}
	}
	if len(created) == 0 {
		return nil
	}
	all, err := FindOwners(ctx, tx, projects, true)
	if err != nil {
		return err
	}
	for _, ch := range created {
		accepted := ch.Samples[0].Accepted
		for _, o := range slices.Backward(all[Project{ch.Organization, ch.Project}]) {
			if !o.Since.After(accepted) {
				ch.assigned, _ = o.Rules.Assign(ch.owned(), grouping.State{}, 0)
				ch.assigned.At = ch.First
				break
			}
		}
	}
	return nil
}

// owned is what rules look at of a new group.
func (ch *change) owned() *grouping.Owned {
	of := &grouping.Owned{Calls: grouping.CallsOf(ch.about.Exceptions), Metadata: storedContext(ch.Samples[0].Occurrence).Metadata}
	for _, day := range ch.Days {
		of.Tagged(&day.Tags)
	}
	return of
}

// FindOwned returns what rules look at of groups of an organization, by their first samples and
// what was counted on their last day. tx must act as the organization.
func FindOwned(ctx context.Context, tx pgx.Tx, organization pg.Organization, groups []string) (map[string]*grouping.Owned, error) {
	rows, err := tx.Query(ctx, `SELECT k.id,
		coalesce((SELECT exceptions FROM occurrences o WHERE o.organization = $1 AND o.error_group = k.id ORDER BY slot LIMIT 1), '[]'),
		coalesce((SELECT context FROM occurrences o WHERE o.organization = $1 AND o.error_group = k.id ORDER BY slot LIMIT 1), '{}'),
		       coalesce((SELECT counted FROM group_days d WHERE d.organization = $1 AND d.error_group = k.id ORDER BY day DESC LIMIT 1), '{}')
		  FROM unnest($2::text[]) AS k (id)`, organization, groups)
	if err != nil {
		return nil, err
	}
	all := map[string]*grouping.Owned{} // bounded by the groups
	var id string
	var exceptions []Exception
	var first Context
	var counted countedDay
	_, err = pgx.ForEachRow(rows, []any{&id, &exceptions, &first, &counted}, func() error {
		of := &grouping.Owned{Calls: grouping.CallsOf(parsed(exceptions)), Metadata: first.Metadata}
		of.Tagged(&counted.day().Tags)
		all[id], exceptions, first, counted = of, nil, Context{}, countedDay{}
		return nil
	})
	return all, err
}

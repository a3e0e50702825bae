package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of a search for samples that maps have come for.
const (
	searchDelay  = 5 * time.Second // of uploads that follow each other
	searchGroups = 20              // of one transaction, which locks them
	MaxSearched  = 10_000          // groups of a project
)

// SearchMaps has the samples of a project's groups mapped anew, soon.
// tx must act as the organization.
func SearchMaps(ctx context.Context, tx pgx.Tx, of Project, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO source_map_searches (organization, project, due, started) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organization, project) DO UPDATE SET due = excluded.due, started = excluded.started, last_group = '', groups = 0, samples = 0`,
		of.Organization, of.Name, now.Add(searchDelay), now)
	return err
}

// A MapSearch is how far a search has come.
type MapSearch struct {
	Started time.Time
	Groups  int64 // looked at
	Samples int64 // mapped
	Ended   bool
}

// FindMapSearch finds the last search of a project; none has
// started where that is zero. tx must act as the organization.
func FindMapSearch(ctx context.Context, tx pgx.Tx, of Project) (found MapSearch, err error) {
	err = tx.QueryRow(ctx, `SELECT started, groups, samples, due IS NULL FROM source_map_searches WHERE organization = $1 AND project = $2`,
		of.Organization, of.Name).Scan(&found.Started, &found.Groups, &found.Samples, &found.Ended)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return found, err
}

// sampled is a sample that maps may be there for.
type sampled struct {
	group      string
	slot       int16
	exceptions []Exception
	build      Build
	context    *grouping.EntryContext
	places     []trace.Place
}

// SearchDue maps samples of some groups of one project whose search is due,
// by the maps that hold at a time. found is false if there is no such
// project, or others are at work on each. tx must act as the system.
func SearchDue(ctx context.Context, tx pgx.Tx, now, holds time.Time, rules *RuleBook) (found bool, err error) {
	var of Project
	var last string
	var groups int
	err = tx.QueryRow(ctx, `SELECT organization, project, last_group, groups FROM source_map_searches WHERE due <= $1
		ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED`, now).Scan(&of.Organization, &of.Name, &last, &groups)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ids, err := lockAfter(ctx, tx, of, last)
	if err != nil {
		return false, err
	}
	mapped, err := mapSamples(ctx, tx, of, ids, holds, rules)
	if err != nil {
		return false, err
	}
	ended := len(ids) < searchGroups || groups+len(ids) >= MaxSearched
	if len(ids) > 0 {
		last = ids[len(ids)-1]
	}
	_, err = tx.Exec(ctx, `UPDATE source_map_searches SET last_group = $3, groups = groups + $4, samples = samples + $5, due = CASE WHEN $6 THEN NULL ELSE due END
		WHERE organization = $1 AND project = $2`, of.Organization, of.Name, last, len(ids), mapped, ended)
	return true, err
}

// lockAfter locks the next groups, in the order of ids, as writers do.
func lockAfter(ctx context.Context, tx pgx.Tx, of Project, last string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT id FROM error_groups WHERE organization = $1 AND project = $2 AND id > $3 AND why->>'language' = 'javascript'
		ORDER BY id LIMIT $4 FOR UPDATE`, of.Organization, of.Name, last, searchGroups)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func mapSamples(ctx context.Context, tx pgx.Tx, of Project, groups []string, holds time.Time, rules *RuleBook) (mapped int, err error) {
	rows, err := tx.Query(ctx, `SELECT error_group, slot, exceptions, built, environment, coalesce(context, '{}') FROM occurrences
		WHERE organization = $1 AND error_group = ANY ($2) AND built IS NOT NULL ORDER BY error_group, slot`, of.Organization, groups)
	if err != nil {
		return 0, err
	}
	var g grouping.Grouper
	mapper := NewMapper()
	samples, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sampled, err error) {
		var environment string
		var context Context
		if err = row.Scan(&s.group, &s.slot, &s.exceptions, &s.build, &environment, &context); err == nil {
			s.context = context.of(environment)
			s.places = g.PlacesOf(trace.JavaScript, parsed(s.exceptions))
			mapper.Ask(of, s.build, holds, s.places)
		}
		return s, err
	})
	if err != nil {
		return 0, err
	}
	if err := mapper.Find(ctx, tx); err != nil {
		return 0, err
	}
	if err := mapper.Use(ctx, tx); err != nil {
		return 0, err
	}
	learned, err := FindLearned(ctx, tx, []Project{of})
	if err != nil {
		return 0, err
	}
	taught := learned[of]
	if taught.Rules, err = rules.At(ctx, tx, of, taught, holds); err != nil {
		return 0, err
	}
	var changed, texts []string
	var slots []int16
	joins := map[string]*join{} // by group; bounded by the groups
	for _, s := range samples {
		differs, hash := s.rewrite(&g, mapper.Mapping(of, s.build, holds, s.places), taught)
		if differs {
			changed, slots, texts = append(changed, s.group), append(slots, s.slot), append(texts, encodeStored(s.exceptions))
		}
		switch known := joins[s.group]; {
		case hash == nil:
		case known == nil:
			joins[s.group] = &join{hash: hash, release: s.build.Release}
		case *known.hash != *hash:
			known.apart = true
		}
	}
	if err := saveJoins(ctx, tx, of, joins); err != nil {
		return 0, err
	}
	if len(changed) == 0 {
		return 0, nil
	}
	_, err = tx.Exec(ctx, `UPDATE occurrences o SET exceptions = k.exceptions::json
		  FROM unnest($2::text[], $3::smallint[], $4::text[]) AS k (error_group, slot, exceptions)
		 WHERE o.organization = $1 AND (o.error_group, o.slot) = (k.error_group, k.slot)`, of.Organization, changed, slots, texts)
	return len(changed), err
}

// rewrite replaces the frames of a sample by where they were written. It
// reports whether that changes any, and the deciding hash by any map.
func (s *sampled) rewrite(g *grouping.Grouper, mapping trace.Mapping, learned grouping.Learned) (changed bool, hash *grouping.ScopedHash) {
	f := g.Rewrite(trace.JavaScript, parsed(s.exceptions), mapping, learned, s.context)
	for i, x := range f.Describe().Exceptions {
		frames := storedFrames(x.Frames, learned.Rules)
		if slices.ContainsFunc(frames, func(f Frame) bool { return f.Printed != nil && f.Printed.Unmapped == "" }) {
			if deciding := f.Deciding(); deciding.Scope != grouping.ScopeRule { // else a rule, and no map, says what is one
				hash = &deciding
			}
			changed = changed || !slices.EqualFunc(frames, s.exceptions[i].Frames, samePlace)
		}
		s.exceptions[i].Frames = frames
	}
	return changed, hash
}

func samePlace(a, b Frame) bool {
	return a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Function == b.Function
}

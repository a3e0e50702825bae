package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// groupStream begins the name of the stream of each group, and
// eventVersion the names of its events. Both are stored.
const (
	groupStream  = "group/"
	eventVersion = "grouping.v1."
)

// Metadata of a decision: who made it, by which request.
const (
	metaActor   = "actor"
	metaName    = "actor_name"
	metaRequest = "request"
)

// An Author is who decides: a member, an API key, or Weir itself.
type Author struct {
	ID      string // of the member or key; empty: Weir
	Name    string // of the member; empty: unknown
	Request string // id of the request

	Address, Client string // where the request came from, for the audit: they are not kept here
}

func (a Author) metadata() eventstore.Metadata {
	metadata := eventstore.Metadata{}
	for name, value := range map[string]string{metaActor: a.ID, metaName: a.Name, metaRequest: a.Request} {
		if value != "" {
			metadata[name] = value
		}
	}
	return metadata
}

// decisions is the store of decisions, for the caller's transactions.
func decisions() *eventstorepg.Store[grouping.Decision] {
	return eventstorepg.New(nil, eventstore.Codec[grouping.Decision]{Encode: encodeDecision, Decode: decodeDecision}, nil)
}

func encodeDecision(d grouping.Decision) (name string, data []byte, err error) {
	data, err = json.Marshal(d)
	return eventVersion + string(d.Kind), data, err
}

func decodeDecision(name string, data []byte) (d grouping.Decision, err error) {
	kind, known := strings.CutPrefix(name, eventVersion)
	if !known || !slices.Contains(grouping.Kinds(), grouping.Kind(kind)) {
		return d, fmt.Errorf("the decision %q is unknown", name)
	}
	err = json.Unmarshal(data, &d)
	d.Kind = grouping.Kind(kind)
	return d, err
}

func streamOf(organization, group string) eventstore.Stream {
	return eventstore.Stream{Organization: organization, Name: groupStream + group}
}

// A DecidedGroup is a group, and what is decided about it.
type DecidedGroup struct {
	Organization string
	Group        Group // as it was; Record brings it up to date
	Decisions    []grouping.Decision
}

// A Change is one decision, with its group after it.
type Change struct {
	Organization string
	Group        Group
	Before       grouping.Status
	Assignee     grouping.Assignee // before
	Decision     grouping.Decision
	By           Author
}

// Record appends decisions, changes their groups, and returns what has
// changed. The groups must be locked, in the order of organizations and ids.
// No other transaction decides until this one ends.
func Record(ctx context.Context, tx pgx.Tx, made []*DecidedGroup, by Author) (changed []Change, err error) {
	for _, m := range made {
		if err := decisions().AppendTx(ctx, tx, streamOf(m.Organization, m.Group.ID), m.Group.Version, by.metadata(), m.Decisions...); err != nil {
			return nil, err
		}
		for _, d := range m.Decisions {
			before, assignee := m.Group.Status, m.Group.State.Assignee
			m.Group.State.Apply(d)
			m.Group.Version++
			m.Group.Status = m.Group.State.Status
			changed = append(changed, Change{m.Organization, m.Group, before, assignee, d, by})
		}
	}
	return changed, saveDecided(ctx, tx, made)
}

// saveDecided writes the columns that follow from decisions.
func saveDecided(ctx context.Context, tx pgx.Tx, made []*DecidedGroup) error {
	if len(made) == 0 {
		return nil
	}
	var organizations, ids, statuses, assignees, states []string
	var versions []int64
	var due []*time.Time
	for _, m := range made {
		g := m.Group
		text, err := json.Marshal(g.State)
		if err != nil {
			return fmt.Errorf("cannot encode the state of group %q: %w", g.ID, err)
		}
		organizations, ids, versions = append(organizations, m.Organization), append(ids, g.ID), append(versions, g.Version)
		statuses, assignees = append(statuses, string(cmp.Or(g.State.Status, grouping.Unresolved))), append(assignees, g.State.Assignee.ID)
		states, due = append(states, string(text)), append(due, dueOf(g.State))
	}
	_, err := tx.Exec(ctx, `
		UPDATE error_groups g SET status = k.status, version = k.version, assignee = k.assignee, due = k.due, decided = k.decided::jsonb
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::timestamptz[], $7::text[])
		       AS k (organization, id, status, version, assignee, due, decided)
		 WHERE (g.organization, g.id) = (k.organization, k.id)`, organizations, ids, statuses, versions, assignees, due, states)
	return err
}

func dueOf(s grouping.State) *time.Time {
	if s.Status != grouping.Ignored || s.Until.At.IsZero() {
		return nil
	}
	return &s.Until.At
}

// LockHeads locks those of some groups of an organization that there are, and
// returns them; instead of members, their heads. tx must act as the organization.
func LockHeads(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string) ([]*DecidedGroup, error) {
	for i, id := range ids {
		ids[i] = storable(id)
	}
	made, err := readGroups(ctx, tx, `organization = $1 AND id IN (`+headsOf+`) ORDER BY organization, id FOR UPDATE`, organization, ids)
	if slices.ContainsFunc(made, func(m *DecidedGroup) bool { return m.Group.MergedInto != "" }) {
		return nil, ErrMerging
	}
	return made, err
}

func readGroups(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]*DecidedGroup, error) {
	rows, err := tx.Query(ctx, `SELECT organization, `+groupColumns+` FROM error_groups g WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*DecidedGroup, error) {
		m := &DecidedGroup{}
		return m, row.Scan(append([]any{&m.Organization}, m.Group.fields()...)...)
	})
}

// observe decides about the changed groups that are resolved or ignored, or
// spike, and gives restored ones the decisions that there are about them.
func observe(ctx context.Context, tx pgx.Tx, changes []*change, restored []eventstore.Stream) ([]Change, error) {
	spikes, err := findSpikes(ctx, tx, changes)
	if err != nil {
		return nil, err
	}
	watched := map[string]*change{} // by organization and id; bounded by the groups of a transaction
	for _, ch := range changes {
		if ch.decided && !ch.created || len(spikes[ch]) > 0 || ch.assigned.Kind != "" {
			watched[ch.Organization+"/"+ch.group] = ch
		}
	}
	if err := rebuild(ctx, tx, restored); err != nil || len(watched) == 0 {
		return nil, err
	}
	found, err := findGroups(ctx, tx, watched)
	if err != nil {
		return nil, err
	}
	return observeWith(ctx, tx, found, watched, spikes)
}

func findGroups(ctx context.Context, tx pgx.Tx, changes map[string]*change) ([]*DecidedGroup, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	var organizations, ids []string
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		organizations, ids = append(organizations, changes[key].Organization), append(ids, changes[key].group)
	}
	return readGroups(ctx, tx, `(organization, id) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY organization, id`, organizations, ids)
}

func observeWith(ctx context.Context, tx pgx.Tx, found []*DecidedGroup, watched map[string]*change, spikes spikesOf) ([]Change, error) {
	known := map[Project]grouping.SeenReleases{} // bounded by the projects of a transaction
	var decided, counted []*DecidedGroup
	for _, m := range found {
		of := Project{m.Organization, m.Group.Project}
		if _, read := known[of]; !read && !m.Group.State.Resolution.IsZero() {
			sights, err := FindReleases(ctx, tx, of)
			if err != nil {
				return nil, err
			}
			known[of] = sights
		}
		ch := watched[m.Organization+"/"+m.Group.ID]
		if d, follows := m.Group.State.Observe(storableSeen(ch.observed()), known[of]); follows {
			m.Decisions = append(m.Decisions, d)
		}
		if ch.assigned.Kind != "" {
			m.Decisions = append(m.Decisions, ch.assigned)
		}
		m.spike(spikes[ch], ch.Last)
		switch {
		case len(m.Decisions) > 0:
			decided = append(decided, m)
		case m.Group.State.Counts():
			counted = append(counted, m)
		}
	}
	if err := saveDecided(ctx, tx, counted); err != nil || len(decided) == 0 {
		return nil, err
	}
	return Record(ctx, tx, decided, Author{})
}

// storableSeen are names as they are stored.
func storableSeen(seen []grouping.Seen) []grouping.Seen {
	seen = slices.Clone(seen)
	for i := range seen {
		seen[i].Environment, seen[i].Release = storable(seen[i].Environment), storable(seen[i].Release)
	}
	return seen
}

// findRestored finds the streams that there are about groups that are about
// to be created: their rows are rebuilt from the log. If any was ever
// merged, all that it takes to merge it again is locked, in order.
func findRestored(ctx context.Context, tx pgx.Tx, changes []*change) ([]eventstore.Stream, error) {
	var organizations, streams []string
	var changed []groupKey
	for _, ch := range changes {
		changed = append(changed, groupKey{ch.Organization, ch.group})
		if ch.created {
			organizations, streams = append(organizations, ch.Organization), append(streams, groupStream+ch.group)
		}
	}
	if len(streams) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT k.organization, k.stream FROM unnest($1::text[], $2::text[]) AS k (organization, stream)
		WHERE EXISTS (SELECT FROM events e WHERE (e.organization, e.stream) = (k.organization, k.stream))`, organizations, streams)
	if err != nil {
		return nil, err
	}
	restored, err := pgx.CollectRows(rows, pgx.RowToStructByPos[eventstore.Stream])
	if err != nil || len(restored) == 0 {
		return nil, err
	}
	all, merged, err := related(ctx, tx, restored)
	if err != nil || !merged {
		return restored, err
	}
	return restored, lockRows(ctx, tx, append(all, changed...))
}

// rebuild makes the columns of groups again from their streams. What an
// ignored group has counted stays, as it follows from no decision.
func rebuild(ctx context.Context, tx pgx.Tx, streams []eventstore.Stream) error {
	if len(streams) == 0 {
		return nil
	}
	var made []*DecidedGroup
	for _, stream := range streams {
		history, err := decisions().ReadTx(ctx, tx, stream)
		if err != nil {
			return err
		}
		found, err := readGroups(ctx, tx, `organization = $1 AND id = $2 FOR UPDATE`, stream.Organization, strings.TrimPrefix(stream.Name, groupStream))
		if err != nil {
			return err
		}
		for _, m := range found {
			state, version := eventstore.Fold[grouping.State](history), eventstore.VersionOf(history)
			if version == m.Group.Version {
				state.Progress = m.Group.State.Progress
			}
			m.Group.State, m.Group.Version = state, version
			for _, recorded := range history {
				m.Decisions = append(m.Decisions, recorded.Event)
			}
			made = append(made, m)
		}
	}
	if err := saveDecided(ctx, tx, made); err != nil {
		return err
	}
	if err := saveSplits(ctx, tx, made); err != nil {
		return err
	}
	all, merged, err := related(ctx, tx, streams)
	if err != nil || !merged {
		return err
	}
	return applyMergesOf(ctx, tx, all)
}

// rebuildBatch is how many groups are rebuilt at once.
const rebuildBatch = 500

// Rebuild makes the columns of the next groups behind a stream again from
// their decisions, and returns the last of them; zero: all are done.
// tx must act as the system.
func Rebuild(ctx context.Context, tx pgx.Tx, behind eventstore.Stream) (last eventstore.Stream, err error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT organization, stream FROM events WHERE (organization, stream) > ($1, $2) AND stream LIKE '`+groupStream+`%'
		ORDER BY organization, stream LIMIT $3`, behind.Organization, behind.Name, rebuildBatch)
	if err != nil {
		return last, err
	}
	streams, err := pgx.CollectRows(rows, pgx.RowToStructByPos[eventstore.Stream])
	if err != nil || len(streams) == 0 {
		return last, err
	}
	all, _, err := related(ctx, tx, streams)
	if err != nil {
		return last, err
	}
	if err := lockRows(ctx, tx, all); err != nil {
		return last, err
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return last, err
	}
	return streams[len(streams)-1], rebuild(ctx, tx, streams)
}

// endBatch is how many groups one transaction ends to ignore.
const endBatch = 100

// EndDue opens groups again that were ignored until a time that
// has come. tx must act as the system.
func EndDue(ctx context.Context, tx pgx.Tx, now time.Time) ([]Change, error) {
	due, err := readGroups(ctx, tx, `due < $1 ORDER BY organization, id LIMIT $2 FOR UPDATE SKIP LOCKED`, now, endBatch)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	for _, m := range due {
		m.Decisions = []grouping.Decision{m.Group.State.Expired()}
	}
	ended, err := Record(ctx, tx, due, Author{})
	if err != nil {
		return nil, err
	}
	return ended, alertDecided(ctx, tx, ended, now)
}

// A RemovedMember was removed from an organization.
type RemovedMember struct {
	Organization, ID string
	At               time.Time
}

// Unassign takes the groups of members who were removed from them. tx must act
// as the system.
func Unassign(ctx context.Context, tx pgx.Tx, removed []RemovedMember) ([]Change, error) {
	organizations, members := keysOf(removed)
	assigned, err := readGroups(ctx, tx, `(organization, assignee) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY organization, id FOR UPDATE`,
		organizations, members)
	if err != nil || len(assigned) == 0 {
		return nil, err
	}
	for _, m := range assigned {
		i := slices.IndexFunc(removed, func(r RemovedMember) bool {
			return r.Organization == m.Organization && r.ID == m.Group.State.Assignee.ID
		})
		m.Decisions = []grouping.Decision{{Kind: grouping.WasAssigned, At: removed[i].At, Reason: "The member who looked after it was removed."}}
	}
	return Record(ctx, tx, assigned, Author{})
}

func keysOf(removed []RemovedMember) (organizations, members []string) {
	for _, r := range removed {
		organizations, members = append(organizations, storable(r.Organization)), append(members, storable(r.ID))
	}
	return organizations, members
}

// An Activity is a decision with its number and its author.
type Activity struct {
	Version int64
	grouping.Decision
	By Author
}

// FindActivity returns the decisions about a group, the newest first: at most
// limit of those before a number. tx must act as the organization.
func FindActivity(ctx context.Context, tx pgx.Tx, organization pg.Organization, group string, before int64, limit int) (found []Activity, err error) {
	rows, err := tx.Query(ctx, `SELECT version, name, data, coalesce(metadata->>'`+metaActor+`', ''), coalesce(metadata->>'`+metaName+`', '')
		FROM events WHERE organization = $1 AND stream = $2 AND name <> '`+eventstorepg.ErasedName+`' AND version < $3 ORDER BY version DESC LIMIT $4`,
		organization, groupStream+storable(group), before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Activity, err error) {
		var name string
		var data []byte
		if err := row.Scan(&a.Version, &name, &data, &a.By.ID, &a.By.Name); err != nil {
			return a, err
		}
		a.Decision, err = decodeDecision(name, data)
		return a, err
	})
}

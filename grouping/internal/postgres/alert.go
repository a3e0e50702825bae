package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Why an alert can't be found or changed.
var (
	ErrNoAlert      = errors.New("no such alert")
	ErrAlertChanged = errors.New("the alert was changed meanwhile")
	ErrTested       = errors.New("the alert was tested within the last minute")
)

// TooManyAlerts means that a project has as many alerts as it may.
type TooManyAlerts int

func (most TooManyAlerts) Error() string {
	return fmt.Sprintf("The project has %d alerts on errors, as many as it may. Delete one that is not needed.", int(most))
}

// An Alert is an alert on a project's errors, as it is stored.
type Alert struct {
	Organization string
	Project      string
	ID           string
	grouping.ErrorAlert
	Version   int64
	UpdatedBy string
	UpdatedAt time.Time
	Messages  int64 // that were sent
	lines     int64 // rows of its log that there have been
	last      grouping.Outcome
}

const alertColumns = `organization, project, id, rule, since, waiting, version, updated_by, updated_at, messages, lines, last_outcome`

func scanAlert(row pgx.CollectableRow) (a *Alert, err error) {
	a = &Alert{}
	return a, row.Scan(&a.Organization, &a.Project, &a.ID, &a.AlertRule, &a.Since, &a.Waiting, &a.Version, &a.UpdatedBy, &a.UpdatedAt, &a.Messages,
		&a.lines, &a.last)
}

func readAlerts(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]*Alert, error) {
	rows, err := tx.Query(ctx, `SELECT `+alertColumns+` FROM error_alerts WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAlert)
}

// FindAlerts lists the alerts of a project, or of all projects if it has no
// name, by name. tx must act as the organization.
func FindAlerts(ctx context.Context, tx pgx.Tx, of Project) ([]*Alert, error) {
	return readAlerts(ctx, tx, `organization = $1 AND ($2 = '' OR project = $2) ORDER BY project, rule->>'name', id`, of.Organization, storable(of.Name))
}

// FindAlert finds an alert, and locks it if it is to be changed.
func FindAlert(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string, toChange bool) (*Alert, error) {
	where := `organization = $1 AND id = $2`
	if toChange {
		where += ` FOR UPDATE`
	}
	found, err := readAlerts(ctx, tx, where, organization, storable(id))
	if err == nil && len(found) == 0 {
		err = ErrNoAlert
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// InsertAlert keeps a new alert, if its project has fewer than most.
func InsertAlert(ctx context.Context, tx pgx.Tx, a *Alert, most int) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir grouping alerts ' || $1, 0))`, a.Organization) // so that they count right
	if err != nil {
		return err
	}
	var many int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM error_alerts WHERE organization = $1 AND project = $2`, a.Organization, a.Project).Scan(&many); err != nil {
		return err
	}
	if many >= most {
		return TooManyAlerts(most)
	}
	_, err = tx.Exec(ctx, `INSERT INTO error_alerts (organization, project, id, rule, since, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		a.Organization, a.Project, a.ID, a.AlertRule, a.Since, a.UpdatedBy, a.UpdatedAt)
	return err
}

// SaveAlerts stores alerts that are locked, and lines of their logs.
func SaveAlerts(ctx context.Context, tx pgx.Tx, alerts []*Alert, lines map[string][]grouping.AlertLine, now time.Time) error {
	var batch pgx.Batch
	for _, a := range alerts {
		for _, line := range lines[a.ID] {
			a.write(&batch, line, now)
		}
		batch.Queue(`UPDATE error_alerts SET rule = $3, since = $4, waiting = $5, due = $6, version = $7, updated_by = $8, updated_at = $9, messages = $10,
			lines = $11, last_outcome = $12 WHERE organization = $1 AND id = $2`,
			a.Organization, a.ID, a.AlertRule, a.Since, a.Waiting, orNull(a.Due), a.Version, a.UpdatedBy, a.UpdatedAt, a.Messages, a.lines, a.last)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// keptLines is how many lines the log of an alert has.
const keptLines = 200

// write writes a line of the log, or adds to the newest one.
func (a *Alert) write(batch *pgx.Batch, line grouping.AlertLine, now time.Time) {
	if a.last == line.Outcome && line.Outcome != grouping.WasSent && line.Outcome != grouping.WasTested {
		batch.Queue(`UPDATE error_alert_log SET at = $4, groups = groups + $5 WHERE organization = $1 AND alert = $2 AND slot = $3`,
			a.Organization, a.ID, (a.lines-1)%keptLines, now, line.Groups)
		return
	}
	batch.Queue(`INSERT INTO error_alert_log (organization, alert, slot, line, first_at, at, outcome, groups, error_group)
		VALUES ($1, $2, $3, $8, $4, $4, $5, $6, $7)
		ON CONFLICT (organization, alert, slot) DO UPDATE SET line = excluded.line, first_at = excluded.first_at, at = excluded.at, outcome = excluded.outcome,
			groups = excluded.groups, error_group = excluded.error_group`,
		a.Organization, a.ID, a.lines%keptLines, now, line.Outcome, line.Groups, line.Group, a.lines)
	a.lines, a.last = a.lines+1, line.Outcome
}

// A LoggedLine is a line of an alert's log, as stored.
type LoggedLine struct {
	grouping.AlertLine
	FirstAt, At time.Time
	Title       string // of the group; empty: it is not known any more
}

// FindAlertLog lists the log of an alert, the newest line first.
func FindAlertLog(ctx context.Context, tx pgx.Tx, organization pg.Organization, alert string) ([]LoggedLine, error) {
	rows, err := tx.Query(ctx, `SELECT outcome, groups, CASE WHEN g.id IS NULL THEN '' ELSE error_group END, first_at, at, coalesce(g.title, '')
		FROM error_alert_log l LEFT JOIN error_groups g ON g.organization = l.organization AND g.id = l.error_group
		WHERE l.organization = $1 AND l.alert = $2 ORDER BY line DESC`, organization, storable(alert))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l LoggedLine, err error) {
		return l, row.Scan(&l.Outcome, &l.Groups, &l.Group, &l.FirstAt, &l.At, &l.Title)
	})
}

// DeleteAlert removes an alert with its log. What was counted for it goes with age.
func DeleteAlert(ctx context.Context, tx pgx.Tx, a *Alert) error {
	var batch pgx.Batch
	batch.Queue(`DELETE FROM error_alert_log WHERE organization = $1 AND alert = $2`, a.Organization, a.ID)
	batch.Queue(`DELETE FROM error_alerts WHERE organization = $1 AND id = $2`, a.Organization, a.ID)
	return tx.SendBatch(ctx, &batch).Close()
}

// TestAlert notes a test, of which there is one a minute; else ErrTested.
func TestAlert(ctx context.Context, tx pgx.Tx, a *Alert, now time.Time) error {
	tag, err := tx.Exec(ctx, `UPDATE error_alerts SET tested_at = $3 WHERE organization = $1 AND id = $2 AND tested_at <= $4`,
		a.Organization, a.ID, now, now.Add(-time.Minute))
	if err == nil && tag.RowsAffected() == 0 {
		return ErrTested
	}
	return err
}

// ForgetRecipients takes members who were removed out of all alerts. tx must act as the system.
func ForgetRecipients(ctx context.Context, tx pgx.Tx, removed []RemovedMember) error {
	organizations, members := keysOf(removed)
	_, err := tx.Exec(ctx, `SELECT FROM error_alerts WHERE organization = ANY ($1) AND rule->'members' ?| $2 ORDER BY organization, id FOR UPDATE`,
		organizations, members) // in the order of those who count
	for i, organization := range organizations {
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE error_alerts SET rule = jsonb_set(rule, '{members}', (rule->'members') - $2::text), version = version + 1
				WHERE organization = $1 AND rule->'members' ? $2`, organization, members[i])
		}
	}
	return err
}

// alertCounted gives the alerts of projects what came to their groups, and
// what followed, to be told later. It locks alerts, in their order.
func alertCounted(ctx context.Context, tx pgx.Tx, changes []*change, decided []Change, now time.Time) error {
	alerts, err := alertsOf(ctx, tx, changes)
	if err != nil || len(alerts) == 0 {
		return err
	}
	byProject := map[Project][]*Alert{} // bounded by the projects of a transaction
	for _, a := range alerts {
		of := Project{a.Organization, a.Project}
		byProject[of] = append(byProject[of], a)
	}
	many, err := countMany(ctx, tx, byProject, changes)
	if err != nil {
		return err
	}
	interesting := map[string]*change{} // by organization and group; bounded by the groups of a transaction
	followed := byGroup(decided)
	for _, ch := range changes {
		key := ch.Organization + "/" + ch.group
		for _, a := range byProject[Project{ch.Organization, ch.Project}] {
			if a.mayBeNew(ch) || many[burstKey{a.ID, ch.group}].Any() || followed[key] != nil {
				interesting[key] = ch
			}
		}
	}
	found, err := findGroups(ctx, tx, interesting)
	if err != nil {
		return err
	}
	var counted []countedGroup
	for _, m := range found {
		key := m.Organization + "/" + m.Group.ID
		counted = append(counted, countedGroup{
			Project{m.Organization, m.Group.Project}, countedOf(m.Group, interesting[key].Count, followed[key]),
		})
	}
	return tell(ctx, tx, byProject, counted, many, now)
}

// alertDecided is alertCounted for groups about which time decided.
func alertDecided(ctx context.Context, tx pgx.Tx, decided []Change, now time.Time) error {
	byProject := map[Project][]*Alert{} // bounded by the groups of a transaction
	for _, c := range decided {
		of := Project{c.Organization, c.Group.Project}
		if _, read := byProject[of]; read {
			continue
		}
		alerts, err := FindAlerts(ctx, tx, of)
		if err != nil {
			return err
		}
		byProject[of] = alerts
	}
	return tell(ctx, tx, byProject, countedOfDecided(decided), nil, now)
}

// countedOfDecided are groups without errors about which something was decided.
func countedOfDecided(decided []Change) (counted []countedGroup) {
	for _, c := range decided {
		counted = append(counted, countedGroup{Project{c.Organization, c.Group.Project}, countedOf(c.Group, &grouping.Count{}, []grouping.Decision{c.Decision})})
	}
	return counted
}

func alertsOf(ctx context.Context, tx pgx.Tx, changes []*change) ([]*Alert, error) {
	var organizations, projects []string
	for _, ch := range changes {
		if n := len(projects); n == 0 || organizations[n-1] != ch.Organization || projects[n-1] != ch.Project {
			organizations, projects = append(organizations, ch.Organization), append(projects, ch.Project)
		}
	}
	return readAlerts(ctx, tx, `(organization, project) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, organizations, projects)
}

func byGroup(decided []Change) map[string][]grouping.Decision {
	followed := map[string][]grouping.Decision{} // bounded by the decisions of a transaction
	for _, c := range decided {
		key := c.Organization + "/" + c.Group.ID
		followed[key] = append(followed[key], c.Decision)
	}
	return followed
}

// mayBeNew reports whether an alert tells new errors and a group may be such.
func (a *Alert) mayBeNew(ch *change) bool {
	before := ch.count - ch.N
	return a.Has(grouping.OnNew) && (before == 0 || before < a.NewFrom && ch.count >= a.NewFrom)
}

type countedGroup struct {
	of Project
	grouping.Counted
}

func countedOf(g Group, came *grouping.Count, decided []grouping.Decision) grouping.Counted {
	return grouping.Counted{
		Group: g.ID, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Status: g.Status, Severities: g.Severities, Environments: g.Environments,
		Assignee: g.State.Assignee, LastRelease: g.LastRelease, Services: came.Services, Hosts: came.Hosts,
		Count: g.Count, Came: came.N, Seen: storableSeen(came.Seen), Decided: decided,
	}
}

// burstKey is a group whose errors an alert counts.
type burstKey struct{ alert, group string }

// bursts are the counts of a group, by alert.
type bursts map[string]*grouping.Burst // bounded by the alerts of a project

// countMany counts errors for those alerts that do, and returns when there
// were too many. All counts of a group are one row, and the group's lock
// orders who writes it.
func countMany(ctx context.Context, tx pgx.Tx, byProject map[Project][]*Alert, changes []*change) (map[burstKey]grouping.Reached, error) {
	var organizations, groups []string
	var watched []*change
	for _, ch := range changes {
		if !ch.decided && slices.ContainsFunc(byProject[Project{ch.Organization, ch.Project}], func(a *Alert) bool { return a.Counts() }) {
			organizations, groups, watched = append(organizations, ch.Organization), append(groups, ch.group), append(watched, ch)
		}
	}
	if len(watched) == 0 {
		return nil, nil
	}
	known, err := findBursts(ctx, tx, organizations, groups)
	if err != nil {
		return nil, err
	}
	many := map[burstKey]grouping.Reached{} // bounded by the groups of a transaction and the alerts of their projects
	texts, newest := make([]string, len(watched)), make([]time.Time, len(watched))
	for i, ch := range watched {
		before, counts := known[[2]string{ch.Organization, ch.group}], bursts{}
		seen := storableSeen(ch.Seen)
		for _, a := range byProject[Project{ch.Organization, ch.Project}] {
			burst := &grouping.Burst{}
			if before[a.ID] != nil {
				burst = before[a.ID]
			}
			if !a.Counts() {
				continue
			}
			if reached := a.Reach(a.Since, seen, burst); reached.Any() {
				many[burstKey{a.ID, ch.group}] = reached
			}
			if !burst.At.IsZero() {
				counts[a.ID] = burst
			}
			if burst.At.After(newest[i]) {
				newest[i] = burst.At
			}
		}
		text, err := json.Marshal(counts)
		if err != nil {
			return nil, fmt.Errorf("cannot encode what was counted: %w", err)
		}
		texts[i] = string(text)
	}
	_, err = tx.Exec(ctx, `INSERT INTO error_alert_counts (organization, error_group, bursts, newest)
		SELECT organization, error_group, bursts::json, newest FROM unnest($1::text[], $2::text[], $3::text[], $4::date[])
		       AS k (organization, error_group, bursts, newest) WHERE bursts <> '{}'
		ON CONFLICT (organization, error_group) DO UPDATE SET bursts = excluded.bursts, newest = excluded.newest`, organizations, groups, texts, newest)
	return many, err
}

func findBursts(ctx context.Context, tx pgx.Tx, organizations, groups []string) (map[[2]string]bursts, error) {
	rows, err := tx.Query(ctx, `SELECT c.organization, c.error_group, c.bursts FROM unnest($1::text[], $2::text[]) AS k (organization, error_group)
		JOIN error_alert_counts c USING (organization, error_group)`, organizations, groups)
	if err != nil {
		return nil, err
	}
	found := map[[2]string]bursts{} // by organization and group; bounded by the groups of a transaction
	var key [2]string
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&key[0], &key[1], &text}, func() error {
		var counts bursts
		err := json.Unmarshal(text, &counts)
		found[key] = counts
		return err
	})
	return found, err
}

// tell has alerts take what they have to say, and stores that.
func tell(ctx context.Context, tx pgx.Tx, byProject map[Project][]*Alert, counted []countedGroup, many map[burstKey]grouping.Reached, now time.Time) error {
	notices := map[string][]grouping.Notice{} // by alert; bounded by the alerts of a transaction's projects
	var organizations, ids []string
	for _, g := range counted {
		for _, a := range byProject[g.of] {
			said := a.Notices(a.Since, &g.Counted, many[burstKey{a.ID, g.Group}])
			if len(said) == 0 {
				continue
			}
			if notices[a.ID] == nil {
				organizations, ids = append(organizations, a.Organization), append(ids, a.ID)
			}
			notices[a.ID] = append(notices[a.ID], said...)
		}
	}
	if len(notices) == 0 {
		return nil
	}
	locked, err := readAlerts(ctx, tx, `(organization, id) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY organization, id FOR UPDATE`,
		organizations, ids)
	if err != nil {
		return err
	}
	lines := map[string][]grouping.AlertLine{} // by alert; bounded as notices
	for _, a := range locked {
		lines[a.ID] = a.Take(notices[a.ID], now)
	}
	return SaveAlerts(ctx, tx, locked, lines, now)
}

// A Message is what an alert tells now.
type Message struct {
	Alert  *Alert
	Groups []MessageGroup
	More   int64 // groups beyond them
	At     time.Time
	Test   bool
}

// A MessageGroup is a group of a message, as it is now.
type MessageGroup struct {
	Group
	grouping.Notice
}

// sendBatch is how many messages one transaction sends.
const sendBatch = 20

// MaxMessages is how many messages the alerts of an organization send in an hour of the clock.
const MaxMessages = 60

// SendAlerts ends the wait of alerts that are due, and returns what they tell,
// and how many were due.
// tx must act as the system.
func SendAlerts(ctx context.Context, tx pgx.Tx, now time.Time, hidden func(organization, project string) bool) (sent []Message, ended int, err error) {
	due, err := readAlerts(ctx, tx, `due <= $1 ORDER BY due, organization, id LIMIT $2 FOR UPDATE SKIP LOCKED`, now, sendBatch)
	if err != nil || len(due) == 0 {
		return nil, 0, err
	}
	room, err := roomOf(ctx, tx, due, now)
	if err != nil {
		return nil, 0, err
	}
	groups, err := waitingGroups(ctx, tx, due)
	if err != nil {
		return nil, 0, err
	}
	lines := map[string][]grouping.AlertLine{} // by alert; bounded by sendBatch
	for _, a := range due {
		worth := func(id string) bool {
			g, there := groups[a.Organization+"/"+id]
			return there && g.MergedInto == "" && g.Status == grouping.Unresolved && !hidden(a.Organization, a.Project)
		}
		var told grouping.Waiting
		if told, lines[a.ID] = a.Send(now, room[a.Organization] > 0, worth); len(told.Listed) == 0 {
			continue
		}
		room[a.Organization]--
		a.Messages++
		m := Message{Alert: a, More: told.More, At: now}
		for _, n := range told.Listed {
			m.Groups = append(m.Groups, MessageGroup{groups[a.Organization+"/"+n.Group], n})
		}
		sent = append(sent, m)
	}
	return sent, len(due), SaveAlerts(ctx, tx, due, lines, now)
}

// roomOf is how many messages organizations may still be sent.
func roomOf(ctx context.Context, tx pgx.Tx, due []*Alert, now time.Time) (map[string]int, error) {
	var organizations []string
	room := map[string]int{} // bounded by sendBatch
	for _, a := range due {
		organizations = append(organizations, a.Organization)
		room[a.Organization] = MaxMessages
	}
	rows, err := tx.Query(ctx, `SELECT organization, sum((waiting->>'sent')::bigint) FROM error_alerts
		WHERE organization = ANY ($1) AND (waiting->>'hour')::timestamptz = $2 GROUP BY organization`, organizations, now.Truncate(time.Hour))
	if err != nil {
		return nil, err
	}
	var organization string
	var many int
	_, err = pgx.ForEachRow(rows, []any{&organization, &many}, func() error {
		room[organization] -= many
		return nil
	})
	return room, err
}

// waitingGroups are the groups that alerts have listed, by organization and id.
func waitingGroups(ctx context.Context, tx pgx.Tx, due []*Alert) (map[string]Group, error) {
	listed := map[string]*change{} // bounded by sendBatch and MaxListed
	for _, a := range due {
		for _, n := range a.Listed {
			listed[a.Organization+"/"+n.Group] = &change{Count: &grouping.Count{Organization: a.Organization}, group: n.Group}
		}
	}
	found, err := findGroups(ctx, tx, listed)
	if err != nil {
		return nil, err
	}
	groups := map[string]Group{} // bounded as listed
	for _, m := range found {
		groups[m.Organization+"/"+m.Group.ID] = m.Group
	}
	return groups, nil
}

// FirstDue is when the first message is due of all alerts; zero: nothing
// waits. tx must act as the system.
func FirstDue(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	var first *time.Time
	if err := tx.QueryRow(ctx, `SELECT min(due) FROM error_alerts WHERE due IS NOT NULL`).Scan(&first); err != nil || first == nil {
		return time.Time{}, err
	}
	return *first, nil
}

// ofAlerts is for tables whose rows name only an alert.
const ofAlerts = `organization = $1 AND ($2 = '' OR alert IN (SELECT id FROM error_alerts WHERE organization = $1 AND project = $2))`

// countsKept is longer than a week's errors are counted and on their way.
const countsKept = 9 * 24 * time.Hour

func alertCounts(clock func() time.Time) prune.Table {
	return prune.Rows{Table: "error_alert_counts", Bound: "one row of each group, 9 days after the last error that an alert counts", Age: "newest",
		Before: prune.Ago(countsKept, clock)}
}

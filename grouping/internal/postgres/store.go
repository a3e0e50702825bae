package postgres

import (
	"context"
	"embed"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Schema is the schema of the tables of this module.
const Schema = "grouping"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{
		pg.Partitions(), bus.Migrations(), inbox.Migrations(), outbox.Migrations(), cursorkey.Migrations(), erasure.Migrations(), eventstorepg.Migrations(),
		{Name: "grouping", FS: migrations, Rights: rights},
	}
}

// storable replaces what JSON allows and Postgres
// can't store in text: U+0000 and invalid UTF-8.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// array writes words as a Postgres array literal: arrays
// of different lengths are sent as one array of text.
func array(words []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, word := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		_, _ = inArray.WriteString(&b, storable(word)) // a Builder never fails
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// inArray escapes a word between quotes.
var inArray = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// numbers writes numbers as array does words.
func numbers(of []int32) string {
	literal := []byte{'{'}
	for i, n := range of {
		if i > 0 {
			literal = append(literal, ',')
		}
		literal = strconv.AppendInt(literal, int64(n), 10)
	}
	return string(append(literal, '}'))
}

// ofGroups is for tables whose rows name only a group.
const ofGroups = `organization = $1 AND ($2 = '' OR error_group IN (SELECT id FROM error_groups WHERE organization = $1 AND project = $2))`

// ofMaps is for the parts of source maps.
const ofMaps = `organization = $1 AND ($2 = '' OR map IN (SELECT id FROM source_maps WHERE organization = $1 AND project = $2))`

// ofStreams is for the decisions about groups, and the rules of a project.
const ofStreams = `organization = $1 AND ($2 = '' OR stream = '` + rulesStream + `' || $2
	OR stream IN (SELECT '` + groupStream + `' || id FROM error_groups WHERE organization = $1 AND project = $2))`

// Erasable are the tables of groups, in the order of erasure:
// groups are last, because samples and decisions are found by them.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("occurrences", ofGroups), erasure.Rows("group_days", ofGroups), erasure.Rows("error_settings", erasure.OfProject),
		erasure.Rows("error_owners", erasure.OfProject),
		erasure.Rows("group_hashes", erasure.OfProject), erasure.Rows("group_budgets", erasure.OfProject),
		erasure.Rows("group_packages", erasure.OfProject), erasure.Rows("group_splits", erasure.OfProject), erasure.Rows("releases", erasure.OfProject),
		erasure.Rows("answers", `organization = $1 AND ($2 = '' OR answer->>'project' = $2)`), erasure.Rows("events", ofStreams),
		erasure.Rows("facts", `organization = $1 AND ($2 = '' OR body->>'project' = $2)`), erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked(),
		erasure.Rows("error_alert_log", ofAlerts), erasure.Rows("error_alert_counts", ofGroups), erasure.Rows("error_alerts", erasure.OfProject),
		erasure.Rows("source_map_joins", erasure.OfProject), erasure.Rows("error_groups", erasure.OfProject), erasure.Rows("source_map_searches", erasure.OfProject),
		erasure.Rows("source_map_parts", ofMaps), erasure.Rows("source_maps", erasure.OfProject),
	}
}

// rights are the privileges that serving needs.
var rights = pg.Rights{
	"answers":             "SELECT, INSERT, DELETE",
	"error_alert_counts":  "SELECT, INSERT, UPDATE, DELETE",
	"error_alert_log":     "SELECT, INSERT, UPDATE, DELETE",
	"error_alerts":        "SELECT, INSERT, UPDATE, DELETE",
	"error_groups":        "SELECT, INSERT, UPDATE, DELETE",
	"error_owners":        "SELECT, INSERT, UPDATE, DELETE",
	"error_settings":      "SELECT, INSERT, UPDATE, DELETE",
	"group_budgets":       "SELECT, INSERT, UPDATE, DELETE",
	"group_days":          "SELECT, INSERT, UPDATE, DELETE",
	"group_hashes":        "SELECT, INSERT, DELETE",
	"group_packages":      "SELECT, INSERT, UPDATE, DELETE",
	"group_splits":        "SELECT, INSERT, DELETE",
	"occurrences":         "SELECT, INSERT, UPDATE, DELETE",
	"releases":            "SELECT, INSERT, UPDATE, DELETE",
	"source_map_joins":    "SELECT, INSERT, UPDATE, DELETE",
	"source_map_parts":    "SELECT, INSERT, DELETE",
	"source_map_searches": "SELECT, INSERT, UPDATE, DELETE",
	"source_maps":         "SELECT, INSERT, UPDATE, DELETE",
}

// idleBudgetsKept is longer than an hour's errors are on
// their way; see activeBudgetsKept for projects at work.
const idleBudgetsKept = 7 * 24 * time.Hour

// answersKept is how long a request may be repeated.
const answersKept = 30 * 24 * time.Hour

// daysKept is how long a day is kept after its beginning.
const daysKept = (grouping.DaysKept + 1) * 24 * time.Hour

// Tables are the tables whose rows age, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		&expiredGroups{clock: clock},
		prune.Rows{
			Table: "group_budgets", Bound: "48 hours of a project that creates groups, and 7 days of others", Age: "hour",
			Before: prune.Ago(idleBudgetsKept, clock),
		},
		alertCounts(clock),
		unusedMaps{prune.Rows{Table: "source_maps", Bound: "90 days after they were last used, and 30 days after they were replaced or deleted",
			Age: mapAge, Before: prune.Ago(mapsKept, clock)}},
		prune.Rows{Table: "group_days", Bound: "90 days of each group, in each at most 80 values", Age: "day", Before: prune.Ago(daysKept, clock)},
		prune.Rows{Table: "answers", Bound: "30 days", Age: "answered_at", Before: prune.Ago(answersKept, clock), AppendOnly: true},
	}
}

// Fixed are the bounds of the other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "events", Keeps: "1,000 decisions about each group, and what ends the last of them; the last 100 versions of a project's rules",
			By: "grouping.MaxDecisions, they go with their group; ruletext.MaxVersions, they go with the project"},
		{Table: "error_alerts", Keeps: "50 of each project", By: "WEIR_MAX_ERROR_ALERTS"},
		{Table: "error_alert_log", Keeps: "the newest 200 lines of each alert", By: "its primary key"},
		{Table: "releases", Keeps: "500 of each project and its environments, those seen last", By: "maxReleases; they go with the project"},
		{Table: "error_settings", Keeps: "100 of each project, the newest", By: "maxSettings; they go with the project"},
		{Table: "error_owners", Keeps: "20 of each project, the newest, with 50 rules each", By: "maxOwners; they go with the project"},
		{Table: "group_hashes", Keeps: "the deciding hash of each group, 100 stricter ones, 100 of later versions, and 100 of rules",
			By: "maxHashes; they go with their group"},
		{Table: "group_packages", Keeps: "one row of each project, of 64 packages of 200 bytes and 1,000 places of values in messages",
			By: "grouping.Packages and grouping.Values; it goes with the project"},
		{Table: "group_splits", Keeps: "100 of each project", By: "grouping.MaxSplits; one goes with the last of its two groups"},
		{Table: "source_map_parts", Keeps: "1 GiB of an organization", By: "maxStored; they go with their map"},
		{Table: "source_map_joins", Keeps: "one row of each group", By: "it goes with the group"},
		{Table: "source_map_searches", Keeps: "one row of each project", By: "it goes with the project"},
		{Table: "occurrences", Keeps: "25 samples of each group", By: "grouping.SampleSlot; they go with their group"},
	}
}

// expiredGroups removes groups whose last errors
// are past retention, found once a day by a scan.
type expiredGroups struct {
	clock  func() time.Time
	swept  time.Time // the day for which none is left
	oldest time.Time // as of then
}

func (*expiredGroups) Name() string { return "error_groups" }

func (*expiredGroups) Keeps() string { return "30 days longer than the entries that were last seen" }

// groupBatch is how many groups one transaction removes.
const groupBatch = 1000

// removeExpired skips groups that a writer has locked. A writer that
// found a group but locks it only later starts over; see errExpired.
// Members go with their head, whose day is never before theirs.
const removeExpired = `
WITH due AS (
	SELECT organization, id, id AS head, version FROM error_groups WHERE expires <= $1::date AND merged_into = '' LIMIT $2
), family AS (
	SELECT * FROM due UNION ALL SELECT m.organization, m.id, due.id, m.version FROM due JOIN error_groups m
	    ON m.organization = due.organization AND m.merged_into = due.id AND m.merged_into <> ''
), locked AS MATERIALIZED (
	SELECT g.organization, g.id, family.head FROM error_groups g JOIN family USING (organization, id)
	 WHERE g.expires <= $1::date AND g.version = family.version FOR UPDATE OF g SKIP LOCKED
), whole AS (
	SELECT organization, head FROM family GROUP BY organization, head
	INTERSECT SELECT organization, head FROM locked
	EXCEPT SELECT organization, head FROM (SELECT organization, head, id FROM family EXCEPT SELECT organization, head, id FROM locked) missing
), gone AS (
	DELETE FROM error_groups g USING locked JOIN whole USING (organization, head) WHERE (g.organization, g.id) = (locked.organization, locked.id)
	RETURNING g.organization, g.id, g.project, g.why
), deciding AS (
	DELETE FROM group_hashes h USING gone g WHERE (h.organization, h.project, h.version, h.hash)
		= (g.organization, g.project, (g.why->>'version')::smallint, decode(g.why->>'hash', 'hex'))
), stricter AS (
	DELETE FROM group_hashes h USING gone g WHERE h.organization = g.organization AND h.error_group = g.id AND h.level = 'trace'
), inherited AS (
	DELETE FROM group_hashes h USING gone g WHERE h.organization = g.organization AND h.error_group = g.id AND h.level = 'inherited'
), ruled AS (
	DELETE FROM group_hashes h USING gone g WHERE h.organization = g.organization AND h.error_group = g.id AND h.level LIKE 'rules/%'
), decided AS (
	DELETE FROM events e USING gone g WHERE e.organization = g.organization AND e.stream = '` + groupStream + `' || g.id
), days AS (
	DELETE FROM group_days d USING gone g WHERE d.organization = g.organization AND d.error_group = g.id
), samples AS (
	DELETE FROM occurrences o USING gone g WHERE o.organization = g.organization AND o.error_group = g.id
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM due)`

const removeSplits = `DELETE FROM group_splits s
	WHERE NOT EXISTS (SELECT FROM error_groups g WHERE g.organization = s.organization AND g.id IN (s.error_group, s.made))`

func (e *expiredGroups) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	today := e.clock().UTC().Truncate(24 * time.Hour)
	if today.Equal(e.swept) {
		return 0, false, nil
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	var due int64
	if err := tx.QueryRow(ctx, removeExpired, today, groupBatch).Scan(&removed, &due); err != nil || due == groupBatch && removed > 0 {
		return removed, err == nil, err
	}
	if _, err := tx.Exec(ctx, removeSplits); err != nil {
		return 0, false, err
	}
	var oldest *time.Time
	if err := tx.QueryRow(ctx, `SELECT min(first_seen) FROM error_groups`).Scan(&oldest); err != nil {
		return 0, false, err
	}
	e.swept, e.oldest = today, time.Time{}
	if oldest != nil {
		e.oldest = *oldest
	}
	return removed, false, nil
}

func (e *expiredGroups) Oldest(context.Context, pgx.Tx) (time.Time, error) { return e.oldest, nil }

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Why an alert can't be found or tested.
var (
	ErrNoAlert = errors.New("the saved search has no alert")
	ErrTested  = errors.New("it was tested within the last minute")
)

// A SearchWithAlert is a saved search in a list.
type SearchWithAlert struct {
	ingest.SavedSearch
	State      ingest.AlertState // of its alert; empty: it has none
	MutedUntil *time.Time
}

// An Alert is the alert of a saved search, as it is stored.
type Alert struct {
	ingest.Alert
	Search      ingest.SavedSearch
	Version     int64
	UpdatedBy   string
	UpdatedAt   time.Time
	NextAt      time.Time
	EvaluatedAt time.Time // zero: never
	claim       int64
	evaluations int64
	changes     int64
}

const alertColumns = `a.every_seconds, a.window_seconds, a.fewer, a.threshold, a.times, a.quiet_seconds, a.examples, a.roles, a.members, a.state, a.since,
	a.streak, a.blind_since, a.told, a.fired_at, a.muted_until, a.facts, a.version, a.updated_by, a.updated_at, a.next_at,
	nullif(a.evaluated_at, '-infinity'), a.claim, a.evaluations, a.changes, ` + searchColumns

func scanAlert(row pgx.Row) (a Alert, err error) {
	var every, window, quiet int64
	var blind, fired, muted, evaluated *time.Time
	err = row.Scan(append([]any{&every, &window, &a.Fewer, &a.Threshold, &a.Times, &quiet, &a.Examples, &a.Roles, &a.Members, &a.State, &a.Since, &a.Streak,
		&blind, &a.Told, &fired, &muted, &a.Facts, &a.Version, &a.UpdatedBy, &a.UpdatedAt, &a.NextAt, &evaluated, &a.claim, &a.evaluations, &a.changes},
		fieldsOfSearch(&a.Search)...)...)
	a.Every, a.Window, a.Quiet = time.Duration(every)*time.Second, time.Duration(window)*time.Second, time.Duration(quiet)*time.Second
	a.BlindSince, a.FiredAt, a.MutedUntil, a.EvaluatedAt = orZero(blind), orZero(fired), orZero(muted), orZero(evaluated)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoAlert
	}
	return a, err
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

const joined = ` FROM alerts a JOIN saved_searches s ON s.organization = a.organization AND s.id = a.search`

// FindAlert finds the alert of a saved search, or ErrNoAlert.
func FindAlert(ctx context.Context, tx pgx.Tx, organization pg.Organization, search string) (Alert, error) {
	return scanAlert(tx.QueryRow(ctx, `SELECT `+alertColumns+joined+` WHERE a.organization = $1 AND a.search = $2`, string(organization), search))
}

// InsertAlert keeps a new alert, if its organization has fewer than most.
func InsertAlert(ctx context.Context, tx pgx.Tx, a *Alert, most int) error {
	if err := lock(ctx, tx, "alerts", a.Search.Organization); err != nil {
		return err
	}
	var many int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM alerts WHERE organization = $1`, a.Search.Organization).Scan(&many); err != nil {
		return err
	}
	if many >= most {
		return TooMany{"alerts", most}
	}
	tag, err := tx.Exec(ctx, `INSERT INTO alerts (organization, search, every_seconds, window_seconds, fewer, threshold, times, quiet_seconds, examples, roles,
		members, updated_by, updated_at, next_at, state, since, told) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		ON CONFLICT DO NOTHING`, append(ruleOf(a), a.State, a.Since, a.Told)...)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrSearchChanged
	}
	return err
}

func ruleOf(a *Alert) []any {
	seconds := func(of time.Duration) int64 { return int64(of / time.Second) }
	return []any{a.Search.Organization, a.Search.ID, seconds(a.Every), seconds(a.Window), a.Fewer, a.Threshold, a.Times, seconds(a.Quiet), a.Examples,
		append([]string{}, a.Roles...), append([]string{}, a.Members...), a.UpdatedBy, a.UpdatedAt, a.NextAt}
}

// UpdateRule replaces the rule of an alert of a version.
func UpdateRule(ctx context.Context, tx pgx.Tx, a *Alert, version int64) error {
	return changed(tx.Exec(ctx, `UPDATE alerts SET every_seconds = $3, window_seconds = $4, fewer = $5, threshold = $6, times = $7, quiet_seconds = $8,
		examples = $9, roles = $10, members = $11, updated_by = $12, updated_at = $13, next_at = $14, version = version + 1, streak = 0,
		claim = claim + 1, claimed_until = '-infinity' WHERE organization = $1 AND search = $2 AND version = $15`, append(ruleOf(a), version)...))
}

// MuteAlert has nothing told of an alert until a time; zero: from now on it is.
func MuteAlert(ctx context.Context, tx pgx.Tx, organization pg.Organization, search string, until time.Time) error {
	return changed(tx.Exec(ctx, `UPDATE alerts SET muted_until = $3, claim = claim + 1, claimed_until = '-infinity' WHERE organization = $1 AND search = $2`,
		string(organization), search, orNull(until)))
}

// TestAlert notes a test, of which there is one a minute; else ErrTested.
func TestAlert(ctx context.Context, tx pgx.Tx, organization pg.Organization, search string, now time.Time) error {
	err := changed(tx.Exec(ctx, `UPDATE alerts SET tested_at = $3, facts = facts + 1, claim = claim + 1, claimed_until = '-infinity'
		WHERE organization = $1 AND search = $2 AND tested_at < $4`, string(organization), search, now, now.Add(-time.Minute)))
	if errors.Is(err, ErrSearchChanged) {
		return ErrTested
	}
	return err
}

// DeleteAlert removes an alert of a version with its history; 0: of any.
func DeleteAlert(ctx context.Context, tx pgx.Tx, organization pg.Organization, search string, version int64) error {
	return changed(tx.Exec(ctx, `DELETE FROM alerts WHERE organization = $1 AND search = $2 AND ($3 = 0 OR version = $3)`, string(organization), search, version))
}

type rows interface{ RowsAffected() int64 }

func changed[T rows](tag T, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return ErrSearchChanged
	}
	return err
}

// A Claiming is which alerts are due for whom.
type Claiming struct {
	Now    time.Time
	Due    time.Time // those due by then are evaluated
	Late   time.Time // those due by then wait no longer, even if they can't be
	Fewer  bool      // those that fire on few entries as well
	Busy   []string  // organizations that are left out
	Most   int
	Leased time.Duration
}

// ClaimAlerts takes one due alert of each organization, first of those that
// have waited longest since their last one.
func ClaimAlerts(ctx context.Context, tx pgx.Tx, c Claiming) ([]Alert, error) {
	rows, err := tx.Query(ctx, `WITH waiting AS (
			SELECT DISTINCT ON (organization) organization, search FROM alerts
			 WHERE next_at <= greatest($2::timestamptz, $3::timestamptz) AND (next_at <= $3 OR next_at <= $2 AND ($4 OR NOT fewer))
			   AND claimed_until <= $1 AND organization <> ALL ($5)
			 ORDER BY organization, next_at
		), turns AS (
			SELECT w.organization, w.search FROM waiting w
			 ORDER BY (SELECT max(evaluated_at) FROM alerts a WHERE a.organization = w.organization) LIMIT $6
		), locked AS (
			SELECT organization, search FROM alerts JOIN turns USING (organization, search) WHERE claimed_until <= $1 FOR UPDATE OF alerts SKIP LOCKED
		), a AS (
			UPDATE alerts SET claim = claim + 1, claimed_until = $7 FROM locked
			 WHERE alerts.organization = locked.organization AND alerts.search = locked.search RETURNING alerts.*
		) SELECT `+alertColumns+` FROM a JOIN saved_searches s ON s.organization = a.organization AND s.id = a.search`,
		c.Now, c.Due, c.Late, c.Fewer, append([]string{}, c.Busy...), c.Most, c.Now.Add(c.Leased))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Alert, error) { return scanAlert(row) })
}

// PostponeAlert gives a claim back: the alert is due again at next, and nobody
// claims it before a time.
func PostponeAlert(ctx context.Context, tx pgx.Tx, a *Alert, next, before, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE alerts SET next_at = $4, claimed_until = $5, evaluated_at = $6 WHERE organization = $1 AND search = $2 AND claim = $3`,
		a.Search.Organization, a.Search.ID, a.claim, next, before, now)
	return err
}

// How many rows alert_history keeps of an alert.
const (
	keptEvaluations = 120
	keptChanges     = 60
)

// SettleAlert stores an alert after an evaluation, unless its claim was lost or
// it was changed meanwhile: then it does nothing, and reports false.
func SettleAlert(ctx context.Context, tx pgx.Tx, a *Alert, e ingest.Evaluation, outcome ingest.AlertOutcome, notable bool) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE alerts SET state = $4, since = $5, streak = $6, blind_since = $7, told = $8, fired_at = $9, facts = $10, next_at = $11,
		evaluated_at = $12, claimed_until = '-infinity', evaluations = evaluations + 1, changes = changes + CASE WHEN $13 THEN 1 ELSE 0 END
		WHERE organization = $1 AND search = $2 AND claim = $3`,
		a.Search.Organization, a.Search.ID, a.claim, a.State, a.Since, a.Streak, orNull(a.BlindSince), a.Told, orNull(a.FiredAt), a.Facts, a.NextAt,
		e.At, notable)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	keep := func(changes bool, slot int64) error {
		_, err := tx.Exec(ctx, `INSERT INTO alert_history (organization, search, changes, slot, at, entries, part, verdict, state, told, held, reason)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (organization, search, changes, slot) DO UPDATE
			SET at = excluded.at, entries = excluded.entries, part = excluded.part, verdict = excluded.verdict, state = excluded.state, told = excluded.told,
			    held = excluded.held, reason = excluded.reason`,
			a.Search.Organization, a.Search.ID, changes, slot, e.At, e.Entries, e.Part, outcome.Judgement, a.State, outcome.Tell, outcome.Held, e.Reason)
		return err
	}
	if err := keep(false, a.evaluations%keptEvaluations); err != nil || !notable {
		return err == nil, err
	}
	err = keep(true, a.changes%keptChanges)
	return err == nil, err
}

// Evaluated is one evaluation of an alert's history.
type Evaluated struct {
	ingest.Evaluation
	Judgement ingest.Judgement
	State     ingest.AlertState
	Told      bool
	Held      string
}

// AlertHistory lists the newest evaluations of an alert, the newest first; or
// those that changed something.
func AlertHistory(ctx context.Context, tx pgx.Tx, organization pg.Organization, search string, changes bool) ([]Evaluated, error) {
	rows, err := tx.Query(ctx, `SELECT at, entries, part, verdict, state, told, held, reason FROM alert_history
		WHERE organization = $1 AND search = $2 AND changes = $3 ORDER BY at DESC`, string(organization), search, changes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Evaluated, err error) {
		err = row.Scan(&e.At, &e.Entries, &e.Part, &e.Judgement, &e.State, &e.Told, &e.Held, &e.Reason)
		return e, err
	})
}

// An AlertBacklog is what is to be evaluated.
type AlertBacklog struct {
	Alerts, Unevaluated int
	First               time.Time // when the first is due
}

// FindAlertBacklog counts the alerts of all organizations.
func FindAlertBacklog(ctx context.Context, tx pgx.Tx) (b AlertBacklog, err error) {
	var first *time.Time
	err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE state = 'unevaluated'), min(next_at) FROM alerts`).Scan(&b.Alerts, &b.Unevaluated, &first)
	b.First = orZero(first)
	return b, err
}

// away is how long the log store may know nothing new before that
// counts as an outage; after one, senders have the time of back to catch up.
const (
	away = 2 * time.Minute
	back = 5 * time.Minute
)

// AdvanceAlertClock notes that all is stored that was accepted up to a time,
// and returns until when what lacks entries is not judged.
func AdvanceAlertClock(ctx context.Context, tx pgx.Tx, stored time.Time) (hold time.Time, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO alert_clock (stored_at, hold_until) VALUES ($1, '2000-01-01Z') ON CONFLICT (one) DO UPDATE
		SET stored_at = greatest(alert_clock.stored_at, excluded.stored_at),
		    hold_until = CASE WHEN excluded.stored_at > alert_clock.stored_at + $2::interval THEN excluded.stored_at + $3::interval ELSE alert_clock.hold_until END
		RETURNING hold_until`, stored, away, back).Scan(&hold)
	return hold, err
}

// StoredPositions are the offsets up to which a consumer group has passed the log.
func StoredPositions(ctx context.Context, tx pgx.Tx, group string) (map[int]int64, error) {
	rows, err := tx.Query(ctx, `SELECT partition, next FROM bus_positions WHERE group_name = $1 AND topic = $2`, group, contract.TopicLogs)
	if err != nil {
		return nil, err
	}
	next := map[int]int64{}
	var partition int
	var offset int64
	_, err = pgx.ForEachRow(rows, []any{&partition, &offset}, func() error {
		next[partition] = offset
		return nil
	})
	return next, err
}

// HasDeferred reports whether entries of an organization wait in the log that
// a consumer group has passed.
func HasDeferred(ctx context.Context, tx pgx.Tx, organization pg.Organization, group string) (deferred bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM bus_deferred WHERE organization = $1 AND group_name = $2 AND topic = $3)`,
		string(organization), group, contract.TopicLogs).Scan(&deferred)
	return deferred, err
}

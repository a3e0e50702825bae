package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Bounds of what is kept of source maps.
const (
	MaxMaps   = 5000    // of an organization, replaced ones included
	MaxStored = 1 << 30 // bytes of an organization's maps, as they are stored
	mapsKept  = 90 * 24 * time.Hour
)

// mapAge is the age of a map that is not used, as if those that
// were replaced had not been used for 60 days then.
const mapAge = `least(t.used::timestamptz, t.valid_until - interval '60 days')`

// unusedMaps removes maps with their parts, which are many.
type unusedMaps struct{ prune.Rows }

// mapBatch is how many maps one transaction removes.
const mapBatch = 20

func (u unusedMaps) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM source_maps WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM source_maps AS t WHERE `+u.Age+` < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`, u.Before(), mapBatch)
	return tag.RowsAffected(), tag.RowsAffected() == mapBatch, err
}

// A SourceMap is one of a project's, without its parts.
type SourceMap struct {
	ID         string
	Release    string // empty: it is found by its debug id alone
	Name       string // see sourcemap.ScriptName
	DebugID    string // empty: it has none
	Digest     []byte // SHA-256 of the text
	Size       int64  // of the text, in bytes
	Stored     int64  // bytes of its parts
	Segments   int
	Uploaded   time.Time
	UploadedBy string
	Used       time.Time // the day on which an error's call was last found in it, or of the upload
}

const mapColumns = `id, release, name, debug_id, digest, size, stored, segments, uploaded, uploaded_by, used`

func (m *SourceMap) fields() []any {
	return []any{&m.ID, &m.Release, &m.Name, &m.DebugID, &m.Digest, &m.Size, &m.Stored, &m.Segments, &m.Uploaded, &m.UploadedBy, &m.Used}
}

// Faults of maps.
var (
	ErrNoMap    = errors.New("no such source map")
	ErrMapsFull = errors.New("the organization has as many source maps as it may have")
)

// lockMaps lets one of an organization's uploads at a time count its maps.
const lockMaps = `SELECT pg_advisory_xact_lock(hashtext('weir source maps'), hashtext($1))`

// SaveMap keeps a map. It holds from a time on, asked for at the end, instead
// of another one of the same script. If that is the same, it stays. tx must
// act as the organization, and must soon be committed.
func SaveMap(ctx context.Context, tx pgx.Tx, of Project, m SourceMap, parts []sourcemap.Part, from func() time.Time) (kept SourceMap, created bool, err error) {
	if _, err := tx.Exec(ctx, lockMaps, of.Organization); err != nil {
		return m, false, err
	}
	before, err := findCurrent(ctx, tx, of, m)
	if err == nil && bytes.Equal(before.Digest, m.Digest) && before.DebugID == m.DebugID {
		_, err = tx.Exec(ctx, `UPDATE source_maps SET used = $3 WHERE organization = $1 AND id = $2 AND used < $3`, of.Organization, before.ID, m.Used)
		return before, false, err
	}
	if err != nil && !errors.Is(err, ErrNoMap) {
		return m, false, err
	}
	for _, part := range parts {
		m.Stored += int64(len(part.Data))
	}
	var count, stored int64
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(stored), 0)::bigint FROM source_maps WHERE organization = $1`, of.Organization).Scan(&count, &stored)
	if err != nil {
		return m, false, err
	}
	if count >= MaxMaps || stored+m.Stored > MaxStored {
		return m, false, ErrMapsFull
	}
	_, err = tx.Exec(ctx, `INSERT INTO source_maps (organization, project, valid_from, `+mapColumns+`)
		VALUES ($1, $2, 'infinity', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		of.Organization, of.Name, m.ID, m.Release, m.Name, m.DebugID, m.Digest, m.Size, m.Stored, m.Segments, m.Uploaded, m.UploadedBy, m.Used)
	if err != nil {
		return m, false, err
	}
	if err := saveParts(ctx, tx, of.Organization, m.ID, parts); err != nil {
		return m, false, err
	}
	_, err = tx.Exec(ctx, `UPDATE source_maps SET valid_from = CASE id WHEN $2 THEN $4 ELSE valid_from END, valid_until = CASE id WHEN $3 THEN $4 END
		WHERE organization = $1 AND id IN ($2, $3)`, of.Organization, m.ID, before.ID, from())
	return m, true, err
}

// findCurrent finds the map that m would replace.
func findCurrent(ctx context.Context, tx pgx.Tx, of Project, m SourceMap) (found SourceMap, err error) {
	err = tx.QueryRow(ctx, `SELECT `+mapColumns+` FROM source_maps WHERE organization = $1 AND project = $2 AND valid_until IS NULL
		AND release = $3 AND (release <> '' AND name = $4 OR release = '' AND debug_id = $5)`, of.Organization, of.Name, m.Release, m.Name, m.DebugID).
		Scan(found.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoMap
	}
	return found, err
}

// partsAtOnce is how many bytes of parts one statement stores.
const partsAtOnce = 1 << 20

func saveParts(ctx context.Context, tx pgx.Tx, organization, id string, parts []sourcemap.Part) error {
	var lines, columns []int32
	var texts [][]byte
	size := 0
	for i, part := range parts {
		lines, columns, texts = append(lines, part.Line), append(columns, part.Column), append(texts, part.Data)
		if size += len(part.Data); size < partsAtOnce && i < len(parts)-1 {
			continue
		}
		_, err := tx.Exec(ctx, `INSERT INTO source_map_parts (organization, map, line, col, data)
			SELECT $1, $2, line, col, data FROM unnest($3::integer[], $4::integer[], $5::bytea[]) AS k (line, col, data)`,
			organization, id, lines, columns, texts)
		if err != nil {
			return fmt.Errorf("cannot store parts of a source map: %w", err)
		}
		lines, columns, texts, size = lines[:0], columns[:0], texts[:0], 0
	}
	return nil
}

// MapPlace is where a list of maps goes on.
type MapPlace struct {
	Uploaded time.Time
	ID       string
}

// Place is where a list goes on after m.
func (m SourceMap) Place() MapPlace { return MapPlace{m.Uploaded, m.ID} }

// FindMaps lists the maps of a project that hold, the newest first, of one
// release unless that is empty. tx must act as the organization.
func FindMaps(ctx context.Context, tx pgx.Tx, of Project, release string, after MapPlace, limit int) ([]SourceMap, error) {
	rows, err := tx.Query(ctx, `SELECT `+mapColumns+` FROM source_maps WHERE organization = $1 AND project = $2 AND valid_until IS NULL
		AND ($3 = '' OR release = $3) AND ($5 = '' OR (uploaded, id) < ($4, $5)) ORDER BY uploaded DESC, id DESC LIMIT $6`,
		of.Organization, of.Name, release, after.Uploaded, after.ID, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m SourceMap, err error) { return m, row.Scan(m.fields()...) })
}

// DeleteMap ends a map: it does not hold for errors that are accepted from
// a time on. tx must act as the organization.
func DeleteMap(ctx context.Context, tx pgx.Tx, of Project, id string, from time.Time) (deleted SourceMap, err error) {
	err = tx.QueryRow(ctx, `UPDATE source_maps SET valid_until = $4 WHERE organization = $1 AND project = $2 AND id = $3 AND valid_until IS NULL
		RETURNING `+mapColumns, of.Organization, of.Name, storable(id), from).Scan(deleted.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoMap
	}
	return deleted, err
}

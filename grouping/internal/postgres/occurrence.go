package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// Occurrence is a sample of a group as it is stored.
type Occurrence struct {
	Entry       string
	At          time.Time
	Level       grouping.Severity
	Environment string
	Message     string // of the entry
	Exceptions  []Exception
}

// Exception is one error of a chain as it is stored.
type Exception struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Frames  []Frame `json:"frames"`
}

// Frame is one call as it is stored.
type Frame struct {
	Module   string `json:"module,omitempty"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	InApp    bool   `json:"in_app,omitempty"`
}

// saveOccurrences keeps samples. Each has its number in the group, and the number its slot: the newest take the place of
// older ones without anything being deleted.
func saveOccurrences(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var organizations, groups, entries, environments, messages, exceptions []string
	var slots, levels []int16
	var times []time.Time
	var g grouping.Grouper
	for _, ch := range changes {
		for slot, o := range ch.sampled() {
			organizations, groups = append(organizations, ch.Organization), append(groups, ch.group)
			slots, entries = append(slots, int16(slot)), append(entries, o.Entry) //nolint:gosec // slots are few
			times, levels = append(times, o.At), append(levels, int16(o.Severity))
			environments, messages = append(environments, storable(o.Environment)), append(messages, storable(o.Message))
			exceptions = append(exceptions, encodeExceptions(&g, o.Error))
		}
	}
	if len(slots) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO occurrences AS o (organization, error_group, slot, entry, at, level, environment, message, exceptions)
		SELECT organization, error_group, slot, entry, at, level, environment, message, exceptions::jsonb
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::smallint[], $7::text[], $8::text[], $9::text[])
		       AS k (organization, error_group, slot, entry, at, level, environment, message, exceptions)
		 ORDER BY organization, error_group, slot
		ON CONFLICT (organization, error_group, slot) DO UPDATE SET entry = excluded.entry, at = excluded.at, level = excluded.level,
		       environment = excluded.environment, message = excluded.message, exceptions = excluded.exceptions`,
		organizations, groups, slots, entries, times, levels, environments, messages, exceptions)
	return err
}

// sampled are the samples by slot. Where two meet in one, the newer stays.
func (ch *change) sampled() map[int]grouping.Occurrence {
	kept := map[int]grouping.Occurrence{}
	first := ch.samples - int64(len(ch.Samples))
	for i, o := range ch.Samples {
		kept[grouping.SampleSlot(first+int64(i))] = o.Occurrence
	}
	return kept
}

func encodeExceptions(g *grouping.Grouper, e grouping.Error) string {
	g.Fingerprint(e)
	stored := []Exception{}
	for _, x := range g.Describe().Exceptions {
		frames := make([]Frame, len(x.Frames))
		for i, f := range x.Frames {
			frames[i] = Frame{storable(f.Module), storable(f.Function), storable(f.File), f.Line, f.Column, f.InApp}
		}
		stored = append(stored, Exception{storable(x.Type), storable(x.Message), frames})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		panic("BUG: cannot encode frames: " + err.Error())
	}
	return string(text)
}

// Occurrences lists the samples of a group, the newest first. tx acts as the organization.
func Occurrences(ctx context.Context, tx pgx.Tx, organization pg.Organization, group string) ([]Occurrence, error) {
	rows, err := tx.Query(ctx, `SELECT entry, at, level, environment, message, exceptions FROM occurrences
		WHERE organization = $1 AND error_group = $2 ORDER BY at DESC, entry DESC`, organization, group)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Occurrence, err error) {
		return o, row.Scan(&o.Entry, &o.At, &o.Level, &o.Environment, &o.Message, &o.Exceptions)
	})
}

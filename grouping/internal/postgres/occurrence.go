package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/pg"
)

// Occurrence is a sample of a group as stored.
type Occurrence struct {
	Entry       string
	At          time.Time
	Severity    grouping.Severity
	Environment string
	Message     string // of the entry
	Exceptions  []Exception
}

// Exception is one error of a chain as stored.
type Exception struct {
	Type           string  `json:"type"`
	Message        string  `json:"message"`
	Frames         []Frame `json:"frames"`
	MoreFrames     int     `json:"more_frames,omitempty"`     // that are not stored
	MoreExceptions int     `json:"more_exceptions,omitempty"` // of the chain, after this one, that are not stored
}

// Frame is one call as stored.
type Frame struct {
	Module   string `json:"module,omitempty"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	InApp    bool   `json:"in_app,omitempty"`

	Library trace.Reason `json:"library,omitempty"`
}

// Bounds of a sample. The log store has the whole entry.
const (
	maxExceptions = 10
	maxFrames     = 50       // of an exception
	maxText       = 300      // bytes of a name of a frame, or a type
	maxMessage    = 1000     // bytes of a message
	maxSample     = 12 << 10 // bytes of all texts of the exceptions; frames beyond are left out
)

// bound cuts what is too long, in place.
func bound(exceptions []Exception) []Exception {
	if n := len(exceptions); n > maxExceptions {
		exceptions = exceptions[:maxExceptions]
		exceptions[maxExceptions-1].MoreExceptions += n - maxExceptions
	}
	left := maxSample
	for i := range exceptions {
		x := &exceptions[i]
		x.Type, x.Message = trace.Cut(x.Type, maxText), trace.Cut(x.Message, maxMessage)
		left -= len(x.Type) + len(x.Message)
	}
	for i := range exceptions {
		left = exceptions[i].boundFrames(left)
	}
	return exceptions
}

// boundFrames keeps the innermost frames as far as
// there is room, and returns what is left of it.
func (x *Exception) boundFrames(left int) int {
	for i := range x.Frames {
		f := &x.Frames[i]
		f.Module, f.Function, f.File = trace.Cut(f.Module, maxText), trace.Cut(f.Function, maxText), trace.Cut(f.File, maxText)
		size := len(f.Module) + len(f.Function) + len(f.File)
		if i == maxFrames || size > left {
			x.MoreFrames += len(x.Frames) - i
			x.Frames = x.Frames[:i]
			return left
		}
		left -= size
	}
	return left
}

// saveOccurrences stores samples. A sample's number in the
// group selects its slot: the newest overwrite older ones.
func saveOccurrences(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var organizations, groups, entries, environments, messages, exceptions []string
	var traces, stacks [][]byte
	var slots, levels []int16
	var times []time.Time
	var g grouping.Grouper
	newest := maxReplaced(changes)
	for _, ch := range changes {
		for slot, o := range ch.sampled(newest) {
			o.Describe(&g)
			organizations, groups = append(organizations, ch.Organization), append(groups, ch.group)
			slots, entries = append(slots, int16(slot)), append(entries, o.Entry) //nolint:gosec // slots are few
			times, levels = append(times, o.At), append(levels, int16(o.Severity))
			environments, messages = append(environments, storable(o.Environment)), append(messages, storable(trace.Cut(o.Message, maxMessage)))
			exceptions = append(exceptions, encodeExceptions(o.Exceptions))
			traces, stacks = append(traces, hashBytes(o.Alike.Trace)), append(stacks, hashBytes(o.Alike.Stack))
		}
	}
	if len(slots) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO occurrences AS o (organization, error_group, slot, entry, at, level, environment, message, exceptions, trace, stack)
		SELECT organization, error_group, slot, entry, at, level, environment, message, exceptions::jsonb, trace, stack
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::smallint[], $7::text[], $8::text[], $9::text[], $10::bytea[],
		              $11::bytea[])
		       AS k (organization, error_group, slot, entry, at, level, environment, message, exceptions, trace, stack)
		 ORDER BY organization, error_group, slot
		ON CONFLICT (organization, error_group, slot) DO UPDATE SET entry = excluded.entry, at = excluded.at, level = excluded.level,
		       environment = excluded.environment, message = excluded.message, exceptions = excluded.exceptions,
		       trace = excluded.trace, stack = excluded.stack`,
		organizations, groups, slots, entries, times, levels, environments, messages, exceptions, traces, stacks)
	return err
}

// fewErrors is how many errors a transaction has at
// most that replaces more than one sample of a full
// group: to store one costs as much as to count many.
const fewErrors = 100

// maxReplaced bounds the replaced samples of a full group.
func maxReplaced(changes []*change) int {
	errs := int64(0)
	for _, ch := range changes {
		errs += ch.N
	}
	if errs > fewErrors {
		return 1
	}
	return grouping.MaxSamples
}

// sampled are the samples to store, by slot; only the newest so
// many, if it replaces others. If two share a slot, the newer stays.
func (ch *change) sampled(newest int) map[int]grouping.Sample {
	kept := map[int]grouping.Sample{}
	samples := ch.Samples
	if ch.samples > grouping.MaxSamples {
		samples = samples[max(0, len(samples)-newest):]
	}
	first := ch.samples - int64(len(samples))
	for i, o := range samples {
		kept[grouping.SampleSlot(first+int64(i))] = o
	}
	return kept
}

func encodeExceptions(exceptions []trace.Exception) string {
	stored := []Exception{}
	for _, x := range exceptions {
		frames := make([]Frame, len(x.Frames))
		for i, f := range x.Frames {
			frames[i] = Frame{storable(f.Module), storable(f.Function), storable(f.File), f.Line, f.Column, f.InApp, f.Library}
		}
		stored = append(stored, Exception{Type: storable(x.Type), Message: storable(x.Message), Frames: frames, MoreFrames: x.More})
	}
	text, err := json.Marshal(bound(stored))
	if err != nil {
		panic("BUG: cannot encode frames: " + err.Error())
	}
	return string(text)
}

// Occurrences lists the samples of a group and its members, the
// newest first. tx must act as the organization.
func Occurrences(ctx context.Context, tx pgx.Tx, organization pg.Organization, group string) ([]Occurrence, error) {
	rows, err := tx.Query(ctx, `SELECT entry, at, level, environment, message, exceptions
		FROM occurrences WHERE organization = $1 AND error_group IN (SELECT $2 UNION ALL SELECT id FROM error_groups WHERE organization = $1 AND merged_into = $2)
		ORDER BY at DESC, entry DESC LIMIT $3`, organization, group, grouping.MaxSamples)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Occurrence, err error) {
		return o, row.Scan(&o.Entry, &o.At, &o.Severity, &o.Environment, &o.Message, &o.Exceptions)
	})
}

// scopeInherited marks deciding hashes of groups that were found by former hashes.
const scopeInherited grouping.HashScope = "inherited"

// inheritedGroups are those that former rules created, by today's deciding hash.
type inheritedGroups map[hashKey]string

// findInherited finds groups of counts without a known hash by their
// former hashes. Only new errors cost that, and only in a project that
// has former rules. Where several counts share a deciding hash, the
// first that has a group decides for all.
func findInherited(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (inheritedGroups, error) {
	taught, err := findFormer(ctx, tx, projectsOf(counts))
	if err != nil || len(taught) == 0 {
		return inheritedGroups{}, err
	}
	hashes, rows := formerHashes(counts, taught)
	known, err := findHashes(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	found := inheritedGroups{}
	for i, c := range counts {
		key := keyOf(c, c.Deciding())
		for _, p := range hashes[i] {
			if group, ok := known[keyOf(c, p)]; ok && found[key] == "" {
				found[key] = group
			}
		}
	}
	return found, nil
}

// formerHashes returns the former hashes of each count, and all as rows.
// Those of another grouping.Version would be added here.
func formerHashes(counts []*grouping.Count, taught map[Project]learned) (hashes [][]grouping.ScopedHash, rows []hashRow) {
	var g grouping.Grouper
	hashes = make([][]grouping.ScopedHash, len(counts))
	for i, c := range counts {
		hashes[i] = taught[projectOf(c)].hashes(&g, c)
		rows = appendRows(rows, c, hashes[i])
	}
	return hashes, rows
}

// projectsOf are the projects of counts, each once.
func projectsOf(counts []*grouping.Count) (projects []Project) {
	for _, c := range counts {
		projects = append(projects, projectOf(c))
	}
	return distinct(projects)
}

// claim maps the deciding hashes to their groups, as far as these
// have room, and adds them to known; others are inherited again next
// time. Where another transaction was faster, its group counts.
func (h inheritedGroups) claim(ctx context.Context, tx pgx.Tx, known map[hashKey]string) error {
	var rows []hashRow
	for key, group := range h {
		rows = append(rows, hashRow{key, scopeInherited, group})
	}
	slices.SortFunc(rows, hashRow.order)
	claimed, err := claimRoom(ctx, tx, scopeInherited, rows)
	if err != nil {
		return fmt.Errorf("cannot inherit: %w", err)
	}
	lost := slices.DeleteFunc(rows, func(r hashRow) bool { return claimed[r.hashKey] != "" })
	joined, err := findHashes(ctx, tx, lost)
	if err != nil {
		return err
	}
	maps.Copy(known, h)
	maps.Copy(known, joined)
	return nil
}

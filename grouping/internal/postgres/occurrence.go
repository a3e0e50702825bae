package postgres

import (
	"context"
	"encoding/json"
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
	Build       Build  // of a script's error
	SplitHash   string // by which errors like it can be split off; empty: nothing tells it from the other samples of its group
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

	Library trace.Reason   `json:"library,omitempty"`
	Rule    string         `json:"rule,omitempty"` // of the project, that says whose code it is
	Printed *trace.Printed `json:"printed,omitempty"`
}

// Bounds of a sample. The log store has the whole entry.
const (
	maxExceptions = 10
	maxFrames     = 50       // of an exception
	maxRule       = 200      // bytes of a rule that says whose code a frame is
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
		size := len(f.Module) + len(f.Function) + len(f.File) + len(f.Rule)
		if f.Printed != nil {
			size += len(f.Printed.Function) + len(f.Printed.File)
		}
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
	var builds, contexts []*string
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
			message := o.Error.Learned.Rules.Scrub(o.Message)
			environments, messages = append(environments, storable(o.Environment)), append(messages, storable(trace.Cut(message, maxMessage)))
			exceptions, builds = append(exceptions, encodeExceptions(o.Exceptions, o.Error.Learned.Rules)), append(builds, encodeBuild(o))
			contexts = append(contexts, encodeContext(o.Occurrence))
			traces, stacks = append(traces, hashBytes(o.SplitHashes.Trace)), append(stacks, hashBytes(o.SplitHashes.Stack))
		}
	}
	if len(slots) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO occurrences AS o (organization, error_group, slot, entry, at, level, environment, message, exceptions, trace, stack, built, context)
		SELECT organization, error_group, slot, entry, at, level, environment, message, exceptions::json, trace, stack, built::json, context::json
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::smallint[], $7::text[], $8::text[], $9::text[], $10::bytea[],
		              $11::bytea[], $12::text[], $13::text[])
		       AS k (organization, error_group, slot, entry, at, level, environment, message, exceptions, trace, stack, built, context)
		 ORDER BY organization, error_group, slot
		ON CONFLICT (organization, error_group, slot) DO UPDATE SET entry = excluded.entry, at = excluded.at, level = excluded.level,
		       environment = excluded.environment, message = excluded.message, exceptions = excluded.exceptions,
		       trace = excluded.trace, stack = excluded.stack, built = excluded.built, context = excluded.context`,
		organizations, groups, slots, entries, times, levels, environments, messages, exceptions, traces, stacks, builds, contexts)
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
func (ch *change) sampled(newest int) map[int]*grouping.Sample {
	kept := map[int]*grouping.Sample{} // bounded by grouping.MaxSamples
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

func encodeExceptions(exceptions []trace.Exception, rules *grouping.Ruleset) string {
	stored := []Exception{}
	for _, x := range exceptions {
		stored = append(stored, Exception{Type: storable(x.Type), Message: storable(x.Message), Frames: storedFrames(x.Frames, rules), MoreFrames: x.More})
	}
	return encodeStored(stored)
}

func storedFrames(frames []trace.Frame, rules *grouping.Ruleset) []Frame {
	stored := make([]Frame, len(frames))
	for i, f := range frames {
		stored[i] = Frame{storable(f.Module), storable(f.Function), storable(f.File), f.Line, f.Column, f.InApp, f.Library,
			trace.Cut(rules.Says(f.Rule), maxRule), storablePrinted(f.Printed)}
	}
	return stored
}

func encodeStored(exceptions []Exception) string {
	text, err := json.Marshal(bound(exceptions))
	if err != nil {
		panic("BUG: cannot encode frames: " + err.Error())
	}
	return string(text)
}

// encodeBuild is the build of a script's error; nil: there is none.
func encodeBuild(o *grouping.Sample) *string {
	if o.Language != trace.JavaScript || o.Release == "" && len(o.DebugIDs) == 0 {
		return nil
	}
	build := Build{Release: storable(o.Release), DebugIDs: map[string]string{}} // bounded by the ids of an error
	for script, id := range o.DebugIDs {
		build.DebugIDs[storable(trace.Clip(script, maxText))] = id
	}
	text, err := json.Marshal(build)
	if err != nil {
		panic("BUG: cannot encode a build: " + err.Error())
	}
	encoded := string(text)
	return &encoded
}

// A Context is what rules ask of the entry of a sample, as stored. Of
// metadata only what the rules of its time asked for is kept.
type Context struct {
	Service  string            `json:"service,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // bounded by the paths of rules
}

// of is what is known of a sample in an environment.
func (c Context) of(environment string) *grouping.EntryContext {
	return &grouping.EntryContext{Service: c.Service, Environment: environment, Metadata: c.Metadata}
}

const maxValue = 200 // bytes of a value in a context

// storedContext is that of an occurrence.
func storedContext(o grouping.Occurrence) Context {
	stored := Context{Service: storable(trace.Clip(o.Service, maxValue)), Metadata: map[string]string{}}
	if c := o.Error.Context; c != nil {
		for path, value := range c.Metadata {
			stored.Metadata[storable(path)] = storable(trace.Clip(value, maxValue))
		}
	}
	return stored
}

// encodeContext is that of an occurrence; nil: there is none.
func encodeContext(o grouping.Occurrence) *string {
	stored := storedContext(o)
	if stored.Service == "" && len(stored.Metadata) == 0 {
		return nil
	}
	text, err := json.Marshal(stored)
	if err != nil {
		panic("BUG: cannot encode what rules ask for: " + err.Error())
	}
	encoded := string(text)
	return &encoded
}

// storablePrinted is a copy of what was printed, cut as frames are.
func storablePrinted(p *trace.Printed) *trace.Printed {
	if p == nil {
		return nil
	}
	stored := *p
	stored.Function, stored.File = trace.Cut(storable(p.Function), maxText), trace.Cut(storable(p.File), maxText)
	return &stored
}

// othersOf are the samples of the group of an occurrence o.
const othersOf = `SELECT FROM occurrences other WHERE (other.organization, other.error_group) = (o.organization, o.error_group)`

// Occurrences lists the samples of a group and its members, the
// newest first. tx must act as the organization.
func Occurrences(ctx context.Context, tx pgx.Tx, organization pg.Organization, group string) ([]Occurrence, error) {
	rows, err := tx.Query(ctx, `SELECT entry, at, level, environment, message, exceptions, coalesce(built, '{}'),
		       coalesce(encode(CASE WHEN EXISTS (`+othersOf+` AND other.stack <> o.stack) THEN stack
		                            WHEN EXISTS (`+othersOf+` AND other.trace <> o.trace) THEN trace END, 'hex'), '')
		FROM occurrences o WHERE organization = $1 AND error_group IN (SELECT $2 UNION ALL SELECT id FROM error_groups WHERE organization = $1 AND merged_into = $2)
		ORDER BY at DESC, entry DESC LIMIT $3`, organization, group, grouping.MaxSamples)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Occurrence, err error) {
		return o, row.Scan(&o.Entry, &o.At, &o.Severity, &o.Environment, &o.Message, &o.Exceptions, &o.Build, &o.SplitHash)
	})
}

package tenants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxAuditFaults is how many faults of a log are kept.
const maxAuditFaults = 100

// An AuditFault is a line of an audit log that was altered.
type AuditFault struct {
	Sequence int64
	Detail   string
}

func (f AuditFault) String() string {
	return fmt.Sprintf("line %d %s", f.Sequence, f.Detail)
}

// An AuditCheck compares a log, from its first kept line, with the events.
type AuditCheck struct {
	Gone   int64        // lines removed because of their age
	Lines  int64        // in the log
	Head   string       // hash of the last line, "" where there is none
	Faults []AuditFault // at most 100; Lines is not bounded

	reductions map[string]*Reduction // by deletion; bounded by the deletions in the log
	begun      map[string]bool       // deletions begun and not finished; bounded by them
}

// Begin sets the line before the first, where older ones were removed.
func (c *AuditCheck) Begin(sequence int64, hash string) { c.Gone, c.Head = sequence, hash }

// Next compares the kept line of the next number with
// the one derived from the events; nil: there is
// none. Of an erased event it checks only the number.
func (c *AuditCheck) Next(sequence int64, kept, want *AuditEvent) {
	switch {
	case kept == nil:
		c.fault(sequence, fmt.Sprintf("is missing: the events have %s of %q", want.Action, want.Target.ID))
	case want == nil:
		c.fault(sequence, fmt.Sprintf("was added: no event has %s of %q", kept.Action, kept.Target.ID))
	case want.erased():
		c.compareErased(*kept, *want)
	default:
		c.compare(*kept, *want)
	}
	if kept == nil {
		return
	}
	if kept.ReducedBy != "" {
		c.reduced(*kept)
	} else if kept.Hash != kept.hash(c.before()) {
		c.fault(sequence, "has a hash that does not follow from its text and the line before")
	}
	c.Lines, c.Head = c.Lines+1, kept.Hash
}

// erased reports whether the line's event was erased.
func (e AuditEvent) erased() bool { return e.Action == "" }

// compareErased compares the number of a line whose event was erased.
func (c *AuditCheck) compareErased(kept, want AuditEvent) {
	if kept.ReducedBy == "" || kept.Sequence != want.Sequence || kept.Stream != want.Stream || kept.Version != want.Version || kept.Position != want.Position {
		c.fault(kept.Sequence, fmt.Sprintf("is not reduced as its event, version %d of %q, was erased", want.Version, want.Stream))
	}
}

func (c *AuditCheck) reduced(kept AuditEvent) {
	if c.reductions == nil {
		c.reductions = map[string]*Reduction{}
	}
	if c.reductions[kept.ReducedBy] == nil {
		c.reductions[kept.ReducedBy] = &Reduction{}
	}
	c.reductions[kept.ReducedBy].Add(kept)
}

// Deleted compares the lines reduced by a deletion, all
// before this event, with the event's hash of them.
func (c *AuditCheck) Deleted(sequence int64, event Event) {
	switch e := event.(type) {
	case DeletionBegun:
		if c.begun == nil {
			c.begun = map[string]bool{}
		}
		c.begun[e.ID()] = true
	case DeletionFinished:
		found := cmp.Or(c.reductions[e.ID()], &Reduction{})
		aged := c.Gone > 0 && found.Lines < e.ReducedLines // the first are removed, and there is no hash of the rest alone
		if !aged && (found.Lines != e.ReducedLines || found.Hash() != e.ReducedHash) {
			c.fault(sequence, fmt.Sprintf("has %d reduced lines, which are not the %d that there are", e.ReducedLines, found.Lines))
		}
		delete(c.begun, e.ID())
		delete(c.reductions, e.ID())
	}
}

// End checks what must hold after the last line.
func (c *AuditCheck) End() {
	for _, id := range slices.Sorted(maps.Keys(c.reductions)) {
		if !c.begun[id] {
			c.fault(c.Lines, fmt.Sprintf("is the last, and there is no deletion of %q, by which %d lines were reduced", id, c.reductions[id].Lines))
		}
	}
}

func (c *AuditCheck) before() string {
	if c.Head == "" {
		return AuditStart
	}
	return c.Head
}

// compare finds the parts of a line that differ from the events'.
func (c *AuditCheck) compare(kept, want AuditEvent) {
	if kept.ReducedBy != "" {
		want.ActorName = ""
	}
	wanted, wrong := map[string]string{}, []string{}
	want.each(func(name, text string) { wanted[name] = text })
	kept.each(func(name, text string) {
		if wanted[name] != text {
			wrong = append(wrong, fmt.Sprintf("%s is %q, the events have %q", name, text, wanted[name]))
		}
	})
	if len(wrong) > 0 {
		c.fault(kept.Sequence, "was changed: "+strings.Join(wrong, "; "))
	}
}

func (c *AuditCheck) fault(sequence int64, detail string) {
	if len(c.Faults) < maxAuditFaults {
		c.Faults = append(c.Faults, AuditFault{sequence, detail})
	}
}

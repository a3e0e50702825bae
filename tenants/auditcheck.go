package tenants

import (
	"fmt"
	"strings"
)

// maxAuditFaults is how many faults of a log are kept.
const maxAuditFaults = 100

// An AuditFault is a line of an audit log that is not as it was written.
type AuditFault struct {
	Sequence int64
	Detail   string
}

func (f AuditFault) String() string {
	return fmt.Sprintf("line %d %s", f.Sequence, f.Detail)
}

// An AuditCheck compares a log, line by line from the first that is kept, with what follows from the events.
type AuditCheck struct {
	Gone   int64        // lines that were removed because of their age
	Lines  int64        // in the log
	Head   string       // hash of the last line, "" where there is none
	Faults []AuditFault // at most 100; Lines goes on
}

// Begin sets the line behind which the log begins, where that is not its first.
func (c *AuditCheck) Begin(sequence int64, hash string) { c.Gone, c.Head = sequence, hash }

// Next compares the kept line of the next number with the one that follows from the events; nil is for none.
func (c *AuditCheck) Next(sequence int64, kept, want *AuditEvent) {
	switch {
	case kept == nil:
		c.fault(sequence, fmt.Sprintf("is missing: the events have %s of %q", want.Action, want.Target.ID))
	case want == nil:
		c.fault(sequence, fmt.Sprintf("was added: no event has %s of %q", kept.Action, kept.Target.ID))
	default:
		c.compare(*kept, *want)
	}
	if kept == nil {
		return
	}
	if kept.Hash != kept.hash(c.before()) {
		c.fault(sequence, "has a hash that does not follow from its text and the line before")
	}
	c.Lines, c.Head = c.Lines+1, kept.Hash
}

func (c *AuditCheck) before() string {
	if c.Head == "" {
		return AuditStart
	}
	return c.Head
}

// compare finds the parts of a line that differ from what the events have.
func (c *AuditCheck) compare(kept, want AuditEvent) {
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

package tenants

import (
	"fmt"
	"strings"
)

// maxAuditFaults is how many faults of a log are told.
const maxAuditFaults = 100

// An AuditFault is a line of an audit log that is not as it was written.
type AuditFault struct {
	Sequence int64
	Detail   string
}

func (f AuditFault) String() string {
	return fmt.Sprintf("line %d %s", f.Sequence, f.Detail)
}

// An AuditCheck compares a log, line by line from the first that is kept, with what the events say that it must be. Its zero value
// has seen nothing yet.
type AuditCheck struct {
	Gone   int64        // lines that were removed because of their age
	Lines  int64        // in the log
	Head   string       // hash of the last line, "" where there is none
	Faults []AuditFault // at most 100; Lines goes on
}

// Begin says behind which line the log begins, where that is not its first.
func (c *AuditCheck) Begin(sequence int64, hash string) { c.Gone, c.Head = sequence, hash }

// Next compares the line with the next number as it is kept with that which the events tell of; nil is for none.
func (c *AuditCheck) Next(sequence int64, kept, told *AuditEvent) {
	switch {
	case kept == nil:
		c.fault(sequence, fmt.Sprintf("is missing: the events tell of %s of %q", told.Action, told.Target.ID))
	case told == nil:
		c.fault(sequence, fmt.Sprintf("was added: no event tells of %s of %q", kept.Action, kept.Target.ID))
	default:
		c.compare(*kept, *told)
	}
	if kept == nil {
		return
	}
	if kept.Hash != kept.hash(c.before()) {
		c.fault(sequence, "has a hash that does not follow from what it says and the line before")
	}
	c.Lines, c.Head = c.Lines+1, kept.Hash
}

func (c *AuditCheck) before() string {
	if c.Head == "" {
		return AuditStart
	}
	return c.Head
}

// compare tells which parts of a line are not what the events say.
func (c *AuditCheck) compare(kept, told AuditEvent) {
	said, wrong := map[string]string{}, []string{}
	told.each(func(name, text string) { said[name] = text })
	kept.each(func(name, text string) {
		if said[name] != text {
			wrong = append(wrong, fmt.Sprintf("%s is %q, the events say %q", name, text, said[name]))
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

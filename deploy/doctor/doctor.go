package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/httpapi"
)

// Run checks everything and returns its findings.
func Run(ctx context.Context, config Config) Report {
	c := newChecker(config)
	host := &hostChecker{checker: c}
	host.settings()
	host.secrets()
	host.files()
	host.directories()
	certificates := &certificateChecker{c}
	certificates.certificate()
	certificates.brokerCertificate()
	broker := &brokerChecker{checker: c}
	broker.bus(ctx)
	databases := &databaseChecker{checker: c, services: host.services, broker: broker}
	databases.databases(ctx)
	return *c.report
}

// A checker runs checks, and notes what they find.
type checker struct {
	Config

	report *Report
}

func newChecker(config Config) checker {
	c := checker{config.orDefault(), &Report{}}
	c.report.At = c.Machine.Clock().UTC()
	return c
}

func (c *checker) now() time.Time { return c.Machine.Clock() }

// look runs one check in bounded time. Its failure is a finding.
func (c *checker) look(ctx context.Context, check, subject, fix string, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, c.CheckTimeout)
	defer cancel()
	err := do(ctx)
	if err != nil {
		c.report.add(Fail, check, subject, err.Error(), fix)
	}
	return err == nil
}

// includes reports whether a module is to be checked.
func (c *checker) includes(module string) bool {
	return len(c.Modules) == 0 || slices.Contains(c.Modules, module)
}

// A Level is the severity of a finding.
type Level string

// The levels. A warning is for what works now and may stop, or is less
// safe than it should be.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// A Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"`   // such as topic
	Subject string `json:"subject"` // such as weir.logs.v1
	Level   Level  `json:"level"`
	Seen    string `json:"seen"`          // with values
	Fix     string `json:"fix,omitempty"` // the remedy, unless it is ok
}

// A Report lists the findings, in the order of the checks.
type Report struct {
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"`
}

// Exit statuses.
const (
	exitWarned = 1
	exitFailed = 2
)

// ExitStatus returns 2 for a failure, 1 for a warning if strict is set, else 0.
func (r Report) ExitStatus(strict bool) int {
	switch {
	case r.Count(Fail) > 0:
		return exitFailed
	case strict && r.Count(Warn) > 0:
		return exitWarned
	}
	return 0
}

// Count returns how many findings have a level.
func (r Report) Count(level Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

func (r *Report) add(level Level, check, subject, seen, fix string) {
	r.Findings = append(r.Findings, Finding{Check: check, Subject: subject, Level: level, Seen: oneLine(seen), Fix: fix})
}

// oneLine makes foreign text printable in one line, without credentials.
func oneLine(text string) string {
	return httpapi.Redact(strings.Join(strings.Fields(terminal.Line(text)), " "))
}

// JSON writes the report for programs.
func (r Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Table writes the report for people, and below it the remedies.
func (r Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "LEVEL\tCHECK\tSUBJECT\tSEEN")
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Level, f.Check, f.Subject, f.Seen)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		if f.Level != OK {
			fmt.Fprintf(w, "\n%s: %s %s: %s\n  %s\n", f.Level, f.Check, f.Subject, f.Seen, f.Fix)
		}
	}
	_, err := fmt.Fprintf(w, "\n%d looks: %d ok, %d warnings, %d failures.\n", len(r.Findings), r.Count(OK), r.Count(Warn), r.Count(Fail))
	return err
}

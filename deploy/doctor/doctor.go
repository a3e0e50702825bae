package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/deploy/settings"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/httpapi"
)

// Run checks everything and returns its findings.
func Run(ctx context.Context, config Config) Report {
	e := &examination{Config: config.orDefault()}
	e.report.At = e.Machine.Clock().UTC()
	e.settings()
	e.secrets()
	e.files()
	e.directories()
	e.certificate()
	e.brokerCertificate()
	e.bus(ctx)
	e.databases(ctx)
	return e.report
}

// An examination is one run of all checks.
type examination struct {
	Config

	report    Report
	services  allinone.Modules // settings of the modules
	brokers   []string
	catalogue []settings.Setting // of all services
	signIn    bus.Access
	dialer    *bus.Dialer
	seen      cluster.Cluster // the brokers' answer; no topics without one
}

func (e *examination) now() time.Time { return e.Machine.Clock() }

// look runs one check in bounded time. Its failure is a finding.
func (e *examination) look(ctx context.Context, check, subject, fix string, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, e.CheckTimeout)
	defer cancel()
	err := do(ctx)
	if err != nil {
		e.report.add(Fail, check, subject, err.Error(), fix)
	}
	return err == nil
}

// includes reports whether a module is to be checked.
func (e *examination) includes(module string) bool {
	return len(e.Modules) == 0 || slices.Contains(e.Modules, module)
}

// directories checks the named ones, and the data directory if there is one.
func (e *examination) directories() {
	dirs := []string{}
	if _, err := os.Stat(e.DataDir); err == nil {
		dirs = append(append(dirs, e.DataDir), e.mounted()...)
	}
	for _, dir := range []string{e.StateDir, e.BackupDir} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		e.space(dir)
	}
	e.backups()
}

// certificates returns the served files: those of the data directory if
// none are named.
func (e *examination) certificates() localca.Files {
	if e.TLSCertFile != "" || e.TLSKeyFile != "" {
		return localca.Files{CA: e.CAFile, Server: e.TLSCertFile, ServerKey: e.TLSKeyFile}
	}
	files := localca.In(filepath.Join(e.DataDir, "tls"))
	if _, err := os.Stat(files.Server); err != nil {
		return localca.Files{}
	}
	return files
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

// A readTopic is how far a module has read a topic into its memory.
type readTopic struct {
	Topic      string
	Partition  int
	TopicID    [16]byte
	LastOffset int64
	LastSum    int64
}

// topicsRead checks that topics have the last records that a module has
// read into its memory.
func (e *examination) topicsRead(ctx context.Context, o opened) {
	read, _ := readRows[readTopic](ctx, e, o, "read", `SELECT topic, partition, topic_id, last_offset, last_sum FROM bus_read ORDER BY 1, 2`)
	for _, r := range read {
		topic, seen := e.seen.Topics[r.Topic]
		if !seen || topic.Err != nil {
			continue
		}
		const fix = "A start of this service answers 500 until tenants has published again what is missing: start tenants, and find out which broker lost data."
		subject := o.name + " of " + r.Topic
		has := e.look(ctx, "read", subject, fix, func(ctx context.Context) error { return e.hasRead(ctx, r, topic.ID) })
		if has {
			e.report.add(OK, "read", subject, "the log has what was read last", "")
		}
	}
}

// hasRead returns why a topic lacks the last record that was read of it.
func (e *examination) hasRead(ctx context.Context, r readTopic, now [16]byte) error {
	if r.TopicID != now {
		return fmt.Errorf("partition %d was read up to %d of another topic of that name", r.Partition, r.LastOffset)
	}
	reader := &logrange.Reader{Brokers: e.brokers, Dialer: e.dialer, Topic: r.Topic}
	kept, err := reader.Keeps(ctx, r.Partition, bus.Mark{Offset: r.LastOffset, Sum: uint32(r.LastSum)}) //nolint:gosec // it was one
	if err == nil && !kept {
		err = fmt.Errorf("partition %d has another record at %d than was read: it has lost its end, and has grown since", r.Partition, r.LastOffset)
	}
	return err
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
	return httpapi.Redact(strings.Join(strings.Fields(strings.Map(printable, text)), " "))
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return ' '
	}
	return r
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

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/grouping/trace"
)

// Commands are those of the program.
type Commands struct {
	Serve       serve       `cmd:"" default:"withargs" help:"Group errors and answer for the groups. What happens where no command is given."`
	Rebuild     rebuild     `cmd:"" name:"rebuild-decisions" help:"Make the status, assignee and version of all groups again from the decisions about them."`
	Fingerprint fingerprint `cmd:"" help:"Print how each entry of standard input would be grouped, and why."`
}

type serve struct {
	app.Config `embed:""`
}

// Run serves until ctx ends.
func (c *serve) Run(ctx context.Context, logger *slog.Logger) error {
	grouping, err := app.New(ctx, c.Config, logger)
	if err != nil {
		return err
	}
	return grouping.Run(ctx)
}

type rebuild struct {
	app.Config `embed:""`
}

// Run rebuilds all groups and ends.
func (c *rebuild) Run(ctx context.Context) error { return app.RebuildDecisions(ctx, c.Config) }

// longestEntry is more than any accepted entry has.
const longestEntry = 1 << 20

// eachError reads entries, one a line, and calls with
// for their errors. A line may also be an error alone.
func eachError(in io.Reader, with func(line int, e grouping.Error) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestEntry)
	for n := 1; lines.Scan(); n++ {
		var entry struct {
			payload
			Error *payload `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		sent := entry.Error
		if sent == nil {
			if sent = &entry.payload; sent.Type == "" && sent.StackTrace == nil {
				continue
			}
		}
		if err := with(n, grouping.Error{Type: sent.Type, Message: sent.Message, StackTrace: sent.StackTrace}); err != nil {
			return err
		}
	}
	return lines.Err()
}

type payload struct {
	Type       string   `json:"type"`
	Message    string   `json:"message"`
	StackTrace []string `json:"stack_trace"`
}

type fingerprint struct{}

// Help implements kong.HelpProvider.
func (fingerprint) Help() string {
	return `Each line of standard input is an entry as clients send it, or the error of one. Each line of the answer says which language
was recognized, the frames, the hashes from strict to loose, what the deciding one covers, and by which rule:

    jq -c '.items[]' entries.json | grouping fingerprint | jq .rule`
}

// Run prints to standard output. It needs neither database nor broker.
func (fingerprint) Run() error { return printFingerprints(os.Stdin, os.Stdout) }

func printFingerprints(in io.Reader, out io.Writer) error {
	var g grouping.Grouper
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return eachError(in, func(line int, e grouping.Error) error { return lines.Encode(printOf(line, g.Fingerprint(e))) })
}

// printed is how one error is grouped.
type printed struct {
	Line       int            `json:"line"`
	Title      string         `json:"title"`
	Language   trace.Language `json:"language"`
	Hashes     []printedHash  `json:"hashes"`
	Rule       string         `json:"rule"`
	Parts      []printedPart  `json:"parts"`
	Exceptions []printedError `json:"exceptions"`
}

type printedHash struct {
	Level   grouping.HashScope `json:"level"`
	Hash    string             `json:"hash"`
	Decides bool               `json:"decides,omitempty"`
}

type printedPart struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

type printedError struct {
	Type    string         `json:"type"`
	Message string         `json:"message"`
	Frames  []printedFrame `json:"frames"`
}

type printedFrame struct {
	Module   string `json:"module,omitempty"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	InApp    bool   `json:"in_app"`

	Library trace.Reason `json:"library,omitempty"`
}

func printOf(line int, f grouping.Fingerprint) printed {
	about, why := f.Describe(), f.Explain()
	p := printed{Line: line, Title: about.Title, Language: about.Language, Rule: why.Rule.Text(), Parts: []printedPart{}, Exceptions: []printedError{}}
	for _, h := range f.All() {
		p.Hashes = append(p.Hashes, printedHash{h.Scope, h.Hash.String(), h == f.Deciding()})
	}
	for _, part := range why.Parts {
		p.Parts = append(p.Parts, printedPart{part.Kind, part.Value})
	}
	for _, e := range about.Exceptions {
		shown := printedError{e.Type, e.Message, []printedFrame{}}
		for _, f := range e.Frames {
			shown.Frames = append(shown.Frames, printedFrame{f.Module, f.Function, f.File, f.Line, f.InApp, f.Library})
		}
		p.Exceptions = append(p.Exceptions, shown)
	}
	return p
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

const errorsHelp = `Lists the groups of errors of a project, the one last seen first:

  weir errors                                     all
  weir errors timeout --status=unresolved         with this word in type, message or place
  weir errors --since=24h --level=fatal           seen in the last day
  weir errors show grp_0123abcd                   one, by its id or the beginning of it
  weir errors occurrences grp_0123abcd            the log entries of one, the newest last
  weir errors resolve grp_0123abcd --in=next      mended in the next release
  weir errors ignore grp_0123abcd --for=48h       quiet for two days
  weir errors merge grp_0123abcd grp_4567cdef     the second is shown in the first from now on
  weir errors rules preview errors.rules          what rules would do to the errors of the last days
  weir errors --json | jq .title                  as the API has them, one on each line`

type errorsCommand struct {
	List errorsList `cmd:"" default:"withargs" help:"List the groups, the one last seen first."`
	Show errorsShow `cmd:"" help:"Show a group: counts, a trace, samples."`

	Occurrences errorsOccurrences `cmd:"" help:"Print the log entries of a group."`

	Resolve errorsResolve `cmd:"" help:"Resolve groups: a later error opens them again."`
	Ignore  errorsIgnore  `cmd:"" help:"Ignore groups, for ever or until something happens."`
	Reopen  errorsReopen  `cmd:"" help:"Open groups again that are resolved or ignored."`
	Assign  errorsAssign  `cmd:"" help:"Say who looks after groups."`
	Merge   errorsMerge   `cmd:"" help:"Merge groups into one, with all that comes."`
	Unmerge errorsUnmerge `cmd:"" help:"Take groups out of the one that they were merged into."`
	Split   errorsSplit   `cmd:"" help:"Make errors like a sample a group of their own from now on."`

	Rules rulesCommand `cmd:"" help:"Say which errors are the same, and what counts."`
}

// Help is called by kong.
func (errorsCommand) Help() string { return errorsHelp }

type errorsList struct {
	Text []string `arg:"" optional:"" help:"Words that all occur in type, message or place."`

	Status      string        `help:"Only unresolved, resolved, ignored or archived groups."`
	Level       []string      `help:"Only groups with entries of these levels."`
	Environment []string      `help:"Only groups with entries of these environments."`
	Since       time.Duration `help:"How far to look back, instead of --from. 0: without limit." default:"0"`
	span
	Limit int  `help:"How many groups at most." default:"50"`
	JSON  bool `name:"json" help:"Print the groups as the API has them, one on each line."`

	projectReader
}

// A projectReader reads a project.
type projectReader struct {
	reader

	Project string `help:"Id of the project." env:"WEIR_PROJECT"`
}

func groupsPath(project string) string {
	return "/projects/" + url.PathEscape(project) + "/error-groups"
}

// Validate is called by kong.
func (l *errorsList) Validate() error {
	if l.Limit < 1 || l.Since < 0 {
		return errors.New("--limit must be more than 0, --since not less")
	}
	return nil
}

// Run is called by kong.
func (l *errorsList) Run(ctx context.Context) error {
	api, found, err := l.open()
	if err != nil {
		return err
	}
	defer api.Close()
	if l.Project = cmp.Or(l.Project, found.Project); l.Project == "" {
		return missing("a project's id", "WEIR_PROJECT")
	}
	return l.print(ctx, api, terminal.Of(os.Stdout), time.Now())
}

func (l *errorsList) print(ctx context.Context, api *client.Client, screen terminal.Screen, now time.Time) error {
	if l.Since > 0 && l.From.IsZero() {
		l.From = now.Add(-l.Since)
	}
	query := l.query()
	query["level"], query["environment"] = l.Level, l.Environment
	setAll(query, map[string]string{"status": l.Status, "q": strings.Join(l.Text, " ")})
	found, err := client.Collect(ctx, api, l.caller(), groupsPath(l.Project), query, l.Limit)
	if err != nil {
		return err
	}
	head := []string{"GROUP", "COUNT", "LAST SEEN", "LEVEL", "STATUS", "ERROR"}
	return screen.List(l.JSON, found, "No group of project "+terminal.Line(l.Project)+" matches.", head, func(item json.RawMessage) ([]string, error) {
		var group client.ErrorGroup
		err := json.Unmarshal(item, &group)
		if screen.Width > 0 && len(group.ID) > shortID {
			group.ID = group.ID[:shortID]
		}
		worst := strings.Join(group.Levels[max(0, len(group.Levels)-1):], "")
		return []string{group.ID, ui.Count(group.Count), shown(group.LastSeen), worst, group.Status, group.Title}, err
	})
}

// shortID is how much of an id a terminal shows: enough to name the group.
const shortID = len("grp_") + 8

func shown(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

type errorsShow struct {
	Group string `arg:"" help:"Id of the group, or its beginning."`
	JSON  bool   `name:"json" help:"Print the group as the API has it."`

	projectReader
}

// Run is called by kong.
func (s *errorsShow) Run(ctx context.Context) error {
	api, found, err := s.open()
	if err != nil {
		return err
	}
	defer api.Close()
	s.Project = cmp.Or(s.Project, found.Project)
	return s.print(ctx, api, terminal.Of(os.Stdout))
}

// wholeID is the length of a group's id.
const wholeID = len("grp_") + 32

func (s *errorsShow) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	id, err := s.whole(ctx, api, s.Group)
	if err != nil {
		return err
	}
	raw, err := client.Read[json.RawMessage](ctx, api, s.caller(), "/error-groups/"+url.PathEscape(id), nil)
	if err != nil {
		return err
	}
	if s.JSON {
		return screen.JSON(raw)
	}
	var group client.ErrorGroup
	if err := json.Unmarshal(raw, &group); err != nil {
		return fmt.Errorf("cannot read group %s: %w", id, err)
	}
	return writeGroup(screen, group)
}

type errorsOccurrences struct {
	Group string `arg:"" help:"Id of the group, or its beginning."`
	Limit int    `help:"How many entries at most, the newest ones." default:"100"`
	JSON  bool   `name:"json" help:"Print the entries as they were sent, one on each line."`

	projectReader
}

// Validate is called by kong.
func (o *errorsOccurrences) Validate() error {
	if o.Limit < 1 {
		return errors.New("--limit must be more than 0")
	}
	return nil
}

// Run is called by kong.
func (o *errorsOccurrences) Run(ctx context.Context) error {
	api, found, err := o.open()
	if err != nil {
		return err
	}
	defer api.Close()
	o.Project = cmp.Or(o.Project, found.Project)
	return o.print(ctx, api, os.Stdout)
}

func (o *errorsOccurrences) print(ctx context.Context, api *client.Client, out io.Writer) error {
	id, err := o.whole(ctx, api, o.Group)
	if err != nil {
		return err
	}
	return printNewest(out, o.Limit, o.JSON, func(visit func(client.StoredEntry) error) error {
		return api.EachOccurrence(ctx, o.APIKey.Reveal(), id, min(o.Limit, 1000), visit)
	})
}

// searched is how many groups are looked through for the beginning of an id.
const searched = 10_000

// whole returns the only id of the project that begins with what was named.
func (s *projectReader) whole(ctx context.Context, api *client.Client, named string) (id string, err error) {
	if len(named) >= wholeID {
		return named, nil
	}
	if s.Project == "" {
		return "", errors.New("the beginning of an id needs a project: --project or WEIR_PROJECT; weir errors --json has whole ids")
	}
	found, err := client.Collect(ctx, api, s.caller(), groupsPath(s.Project), url.Values{}, searched)
	if err != nil {
		return "", err
	}
	for _, item := range found {
		var group client.ErrorGroup
		switch err := json.Unmarshal(item, &group); {
		case err != nil:
			return "", fmt.Errorf("cannot read a group: %w", err)
		case !strings.HasPrefix(group.ID, named):
		case id != "":
			return "", fmt.Errorf("several groups begin with %q: name more of the id; weir errors --json has whole ids", named)
		default:
			id = group.ID
		}
	}
	if id == "" {
		return "", fmt.Errorf("no group of project %s begins with %q: weir errors lists them", s.Project, named)
	}
	return id, nil
}

func writeGroup(screen terminal.Screen, group client.ErrorGroup) error {
	fmt.Fprintln(screen, terminal.Line(group.Title))
	for _, line := range [][2]string{
		{"group", group.ID}, {"project", group.Project}, {"status", group.Status}, {"count", ui.Count(group.Count)},
		{"seen", shown(group.FirstSeen) + " to " + shown(group.LastSeen)}, {"levels", strings.Join(group.Levels, ", ")},
		{"environments", strings.Join(group.Environments, ", ")}, {"culprit", group.Culprit}, {"similar", strings.Join(group.Similar, ", ")},
	} {
		if line[1] != "" {
			fmt.Fprintf(screen, "%-13s %s\n", line[0], terminal.Line(line[1]))
		}
	}
	for _, member := range group.Members {
		fmt.Fprintf(screen, "%-13s %s, %s times: %s\n", "merged", member.ID, ui.Count(member.Count), terminal.Line(member.Title))
	}
	if len(group.Occurrences) == 0 {
		return nil
	}
	fmt.Fprintln(screen, "\nTrace of the newest sample, the root cause first:")
	writeTrace(screen, group.Occurrences[0])
	fmt.Fprintln(screen, "\nSamples:")
	var rows [][]string
	for _, o := range group.Occurrences {
		rows = append(rows, []string{o.Time.Local().Format("2006-01-02 15:04:05.000"), o.Level, o.Environment, o.Hash, o.Message})
	}
	return screen.Table([]string{"TIME", "LEVEL", "ENVIRONMENT", "HASH", "MESSAGE"}, rows)
}

// writeTrace writes the errors of a chain with their calls. Calls of
// libraries stand behind a dash.
func writeTrace(screen terminal.Screen, sample client.ErrorSample) {
	for i, exception := range sample.Exceptions {
		fmt.Fprintln(screen, terminal.Line(strings.TrimSuffix(exception.Type+": "+exception.Message, ": ")))
		for _, frame := range sample.Frames {
			if frame.Exception != i {
				continue
			}
			mark := "-"
			if frame.InApp {
				mark = "at"
			}
			call := strings.TrimPrefix(frame.Module+"."+frame.Function, ".")
			if frame.File != "" {
				call += " " + frame.File
			}
			if frame.Line > 0 {
				call += fmt.Sprintf(":%d", frame.Line)
			}
			fmt.Fprintf(screen, "  %-2s %s\n", mark, terminal.Line(call))
		}
		if exception.MoreFrames > 0 {
			fmt.Fprintf(screen, "  … %d more\n", exception.MoreFrames)
		}
	}
}

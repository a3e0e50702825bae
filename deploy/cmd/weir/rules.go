package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

const rulesHelp = `Rules say which errors of a project are the same, and what counts:

  weir errors rules > errors.rules                 what there is
  weir errors rules preview errors.rules           what it would do to the errors of the last 7 days
  weir errors rules set errors.rules --note=noise  from now on
  weir errors rules versions                       who changed them, and why
  weir errors rules restore 3                      as they were

A rule is a line:

  ignore   function:assertOk
  own      path:src/shop/*
  library  module:com.acme.legacy.*
  same     "Card declined" type:*Declined service:pay
  group by type, metadata.tenant where service:gateway
  scrub    email`

type rulesCommand struct {
	Get      rulesGet      `cmd:"" default:"withargs" help:"Print the rules of a project."`
	Set      rulesSet      `cmd:"" help:"Set the rules of a project."`
	Preview  rulesPreview  `cmd:"" help:"Show which groups rules would join or take apart. Nothing is changed."`
	Versions rulesVersions `cmd:"" help:"List the versions, the newest first."`
	Restore  rulesRestore  `cmd:"" help:"Set the rules as they were in an earlier version."`
}

// Help is called by kong.
func (rulesCommand) Help() string { return rulesHelp }

type rulesGet struct {
	Version int64 `help:"An earlier version. 0: the newest."`
	JSON    bool  `name:"json" help:"Print the version as the API has it."`

	projectReader
}

// Run is called by kong.
func (g *rulesGet) Run(ctx context.Context) error {
	api, err := g.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return g.print(ctx, api, terminal.Of(os.Stdout), os.Stdout)
}

func (g *rulesGet) print(ctx context.Context, api *client.Client, screen terminal.Screen, out io.Writer) error {
	path := client.RulesPath(g.Project)
	if g.Version > 0 {
		path += "/versions/" + strconv.FormatInt(g.Version, 10)
	}
	raw, err := client.Read[json.RawMessage](ctx, api, g.caller(), path, nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return screen.JSON(raw)
	}
	var rules client.ErrorRules
	if err := json.Unmarshal(raw, &rules); err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(rules.Rules, "\n"), "\n") {
		if _, err := fmt.Fprintln(out, terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// A rulesFile is rules in a file.
type rulesFile struct {
	File string `arg:"" help:"File with the rules, one a line; - is the standard input."`
}

// maxRules is more than rules may have: the API says so.
const maxRules = 1 << 20

func (f rulesFile) read() (string, error) {
	in := io.Reader(os.Stdin)
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRules))
	return string(text), err
}

// A rulesNote says why rules are changed.
type rulesNote struct {
	Note      string `help:"Why, on one line."`
	IfVersion int64  `name:"if-version" help:"Refuse unless this is the newest version. -1: whatever it is." default:"-1"`
}

func (n rulesNote) change() (c client.RulesChange) {
	if c.Note = n.Note; n.IfVersion >= 0 {
		c.IfVersion = &n.IfVersion
	}
	return c
}

type rulesSet struct {
	rulesFile
	rulesNote
	projectReader
}

// Run is called by kong.
func (s *rulesSet) Run(ctx context.Context) error {
	text, err := s.read()
	if err != nil {
		return err
	}
	return s.changeRules(func(api *client.Client) (client.ErrorRules, error) {
		change := s.change()
		change.Rules = &text
		return api.SetRules(ctx, s.APIKey.Reveal(), s.Project, change)
	})
}

type rulesRestore struct {
	Version int64 `arg:"" help:"Number of the version."`
	rulesNote
	projectReader
}

// Run is called by kong.
func (r *rulesRestore) Run(ctx context.Context) error {
	return r.changeRules(func(api *client.Client) (client.ErrorRules, error) {
		return api.RestoreRules(ctx, r.APIKey.Reveal(), r.Project, r.Version, r.change())
	})
}

func (s *projectReader) changeRules(change func(api *client.Client) (client.ErrorRules, error)) error {
	api, err := s.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	rules, err := change(api)
	if err != nil {
		return err
	}
	since := ""
	if rules.Since != nil {
		since = ", for errors accepted from " + rules.Since.Local().Format("2006-01-02 15:04:05") + " on"
	}
	_, err = fmt.Fprintf(os.Stdout, "Version %d%s.\n", rules.Version, since)
	return err
}

type rulesVersions struct {
	Limit int  `help:"How many at most." default:"20"`
	JSON  bool `name:"json" help:"Print them as the API has them, one on each line."`

	projectReader
}

// Run is called by kong.
func (v *rulesVersions) Run(ctx context.Context) error {
	api, err := v.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return v.print(ctx, api, terminal.Of(os.Stdout))
}

func (v *rulesVersions) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	found, err := client.Collect(ctx, api, v.caller(), client.RulesPath(v.Project)+"/versions", url.Values{}, v.Limit)
	if err != nil {
		return err
	}
	head := []string{"VERSION", "SINCE", "WHO", "WHY"}
	return screen.List(v.JSON, found, "There are no rules.", head, func(item json.RawMessage) ([]string, error) {
		var rules client.ErrorRules
		err := json.Unmarshal(item, &rules)
		since := ""
		if rules.Since != nil {
			since = shown(*rules.Since)
		}
		return []string{strconv.FormatInt(rules.Version, 10), since, cmp.Or(rules.Name, rules.Actor), rules.Note}, err
	})
}

type rulesPreview struct {
	rulesFile
	JSON bool `name:"json" help:"Print the preview as the API has it."`

	projectReader
}

// Run is called by kong.
func (p *rulesPreview) Run(ctx context.Context) error {
	text, err := p.read()
	if err != nil {
		return err
	}
	api, err := p.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return p.print(ctx, api, terminal.Of(os.Stdout), os.Stdout, text)
}

func (p *rulesPreview) print(ctx context.Context, api *client.Client, screen terminal.Screen, out io.Writer, text string) error {
	raw, err := api.PreviewRules(ctx, p.APIKey.Reveal(), p.Project, text)
	if err != nil {
		return err
	}
	if p.JSON {
		return screen.JSON(raw)
	}
	var preview client.RulesPreview
	if err := json.Unmarshal(raw, &preview); err != nil {
		return err
	}
	_, err = io.WriteString(out, previewText(preview))
	return err
}

// previewText tells a preview in lines.
func previewText(p client.RulesPreview) string {
	var b strings.Builder
	for _, join := range p.Joins {
		b.WriteString("joined:\n")
		for _, group := range join.Groups {
			fmt.Fprintf(&b, "  %s\n", sideText(group))
		}
		fmt.Fprintf(&b, "  → %s\n", sideText(join.Into))
	}
	for i, splits := range [][]client.RulesSplit{p.Splits, p.Moves} {
		what := []string{"taken apart", "goes on in a new group"}[i]
		for _, split := range splits {
			fmt.Fprintf(&b, "%s:\n  %s\n", what, sideText(split.Group))
			for _, into := range split.Into {
				fmt.Fprintf(&b, "  → %s\n", sideText(into))
			}
		}
	}
	if more := p.MoreJoins + p.MoreSplits + p.MoreMoves; more > 0 {
		fmt.Fprintf(&b, "and %s more changes\n", ui.Count(more))
	}
	fmt.Fprintf(&b, "Tried on %s samples of %s groups seen since %s", ui.Count(p.Samples), ui.Count(p.Groups), shown(p.Since))
	if p.Incomplete {
		b.WriteString(", those last seen: there are more")
	}
	if p.Unknown > 0 {
		fmt.Fprintf(&b, "; not on %s others, whose metadata is not kept", ui.Count(p.Unknown))
	}
	b.WriteString(". Nothing is changed.\n")
	return b.String()
}

func sideText(s client.RulesSide) string {
	id := "new"
	if s.ID != "" {
		id = s.ID[:min(len(s.ID), shortID)]
	}
	text := id + "  " + s.Title
	for _, value := range s.Values {
		text += "  " + value
	}
	if s.Count > 0 {
		text += "  (" + ui.Count(s.Count) + " errors)"
	}
	return terminal.Line(text)
}

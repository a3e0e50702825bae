package settings

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/httpapi"
)

// A Setting is one that a program takes from its environment or as a flag.
type Setting struct {
	Variable string // "": none
	Flag     string
	Kind     string // of value, such as number
	Default  string
	Enum     string // the possible values, separated by commas
	Help     string
	Secret   bool // the variable with _FILE may name a file with it
	Required bool
}

// Of lists the settings of a configuration, or of commands, by their
// variables, each once.
func Of(config any) ([]Setting, error) {
	parser, err := kong.New(config, kong.Vars{"attacks": "see --help", "ledger_parts": "see --help"}, kong.NoDefaultHelp())
	if err != nil {
		return nil, fmt.Errorf("cannot read the settings of %T: %w", config, err)
	}
	var all []Setting
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && !flag.Hidden {
			all = append(all, settingOf(flag))
		}
		return next(nil)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Flag, b.Flag))
	})
	return slices.CompactFunc(all, func(a, b Setting) bool { return a.Variable == b.Variable && a.Flag == b.Flag }), nil
}

func settingOf(flag *kong.Flag) Setting {
	s := Setting{
		Flag: "--" + flag.Name, Kind: kindOf(flag.Target.Type()), Default: flag.Default, Enum: flag.Enum, Help: flag.Help,
		Secret: flag.Target.Type() == reflect.TypeFor[httpapi.Secret](), Required: flag.Required,
	}
	if len(flag.Envs) > 0 {
		s.Variable = flag.Envs[0]
	}
	return s
}

func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[httpapi.Secret]():
		return "secret"
	case t.Name() == "Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list of " + kindOf(t.Elem())
	case t.Kind() == reflect.Bool:
		return "yes or no"
	case strings.Contains(t.Kind().String(), "int"), strings.Contains(t.Kind().String(), "float"):
		return "number"
	}
	return "text"
}

// A Program has settings.
type Program struct {
	Name   string
	Config any // as it is parsed
}

// A row is a setting, and the programs that take it alike.
type row struct {
	Setting

	programs []string
}

// Write writes the settings of programs as a page of Markdown.
func Write(w io.Writer, programs []Program) error {
	rows, err := rowsOf(programs)
	if err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString(introduction)
	for _, r := range rows {
		if r.Variable != "" {
			fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s | %s |\n", r.Variable, r.Flag, r.kind(), r.preset(), strings.Join(r.programs, ", "), r.help())
		}
	}
	page.WriteString(withoutVariable)
	for _, r := range rows {
		if r.Variable == "" {
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", r.Flag, r.kind(), r.preset(), strings.Join(r.programs, ", "), r.help())
		}
	}
	_, err = io.WriteString(w, page.String())
	return err
}

const introduction = `# Settings

Every setting of every program, made from what the programs parse by ` + "`make docs`" + `. A flag goes before its variable. A duration is such as ` +
	"`90s` or `168h`" + `, a list has commas
between. A secret may also stand in a file that the variable with ` + "`_FILE`" + ` behind it names. ` + "`weir run`" + ` takes the settings of ingest,
ledger, grouping and tenants from its environment, too.

| Variable | Flag | Value | Default | Programs | What |
|---|---|---|---|---|---|
`

const withoutVariable = `
## Flags without a variable

| Flag | Value | Default | Programs | What |
|---|---|---|---|---|
`

// rowsOf joins equal settings of several programs.
func rowsOf(programs []Program) (rows []row, err error) {
	for _, program := range programs {
		all, err := Of(program.Config)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			at := slices.IndexFunc(rows, func(r row) bool { return r.Setting == s })
			if at < 0 {
				at, rows = len(rows), append(rows, row{Setting: s})
			}
			rows[at].programs = append(rows[at].programs, program.Name)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Flag, b.Flag))
	})
	return rows, nil
}

func (r row) kind() string {
	if r.Enum == "" {
		return r.Kind
	}
	return "`" + strings.Join(strings.Split(r.Enum, ","), "`, `") + "`"
}

func (r row) preset() string {
	switch {
	case r.Required:
		return "required"
	case r.Default == "":
		return ""
	}
	return "`" + r.Default + "`"
}

func (r row) help() string { return strings.ReplaceAll(r.Help, "|", `\|`) }

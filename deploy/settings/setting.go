package settings

import (
	"cmp"
	"fmt"
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

package grouping

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/trace"
)

// variants is an error and variants of it. Those in same differ from
// base only in what changes between two occurrences of one fault: they
// must join base. Those in other are other faults: they must not.
type variants struct {
	name  string
	base  Error
	same  map[string]Error
	other map[string]Error
}

var allVariants = [][]variants{javaVariants, javascriptVariants, pythonVariants, goVariants, rubyVariants, phpVariants, dotnetVariants, otherVariants, identifiedVariants, generatedVariants, chainVariants, causeVariants, depthVariants, nativeVariants, dartVariants, beamVariants, scriptVariants, fieldVariants}

func thrown(typ, message, stack string) Error {
	return Error{Type: typ, Message: message, StackTrace: strings.Split(strings.Trim(stack, "\n"), "\n")}
}

// Errors of one fault join, errors of
// different faults do not, in every language.
func TestVariants(t *testing.T) {
	for _, k := range allVariants {
		for _, k := range k {
			t.Run(k.name, k.check)
		}
	}
}

func (k variants) check(t *testing.T) {
	var g Grouper
	base := g.Fingerprint(k.base).Deciding()
	why := g.Fingerprint(k.base).Explain()
	for what, e := range k.same {
		if got := g.Fingerprint(e).Deciding(); got != base {
			t.Errorf("%s must not move it\nbase %+v\n got %+v", what, why, g.Fingerprint(e).Explain())
		}
	}
	for what, e := range k.other {
		if g.Fingerprint(e).Deciding() == base {
			t.Errorf("%s must move it\nboth %+v", what, why)
		}
	}
}

// Senders cut traces into strings in any way: lines, all at
// once, with and without indentation and carriage returns.
func TestPieces(t *testing.T) {
	for _, ks := range [][]variants{javaVariants, javascriptVariants, pythonVariants, goVariants, rubyVariants, phpVariants, dotnetVariants} {
		for _, k := range ks {
			var g Grouper
			want := g.Fingerprint(k.base).Deciding()
			whole := strings.Join(k.base.StackTrace, "\n")
			for what, pieces := range map[string][]string{
				"one string":      {whole},
				"crlf":            {strings.ReplaceAll(whole, "\n", "\r\n")},
				"line ends":       strings.SplitAfter(whole, "\n"),
				"blank lines":     strings.SplitAfter(strings.ReplaceAll(whole, "\n", "\n\n"), "\n"),
				"two big strings": {whole[:strings.IndexByte(whole, '\n')], whole[strings.IndexByte(whole, '\n')+1:]},
			} {
				e := Error{Type: k.base.Type, Message: k.base.Message, StackTrace: pieces}
				if got := g.Fingerprint(e).Deciding(); got != want {
					t.Errorf("%s: %s moves it: %+v", k.name, what, g.Fingerprint(e).Explain())
				}
			}
		}
	}
}

// Of a stack of a thousand calls those in the middle do
// not count, and shown ones are marked as own or foreign.
func TestLongStacks(t *testing.T) {
	stack := func(middle string) (e Error) {
		e.Type = "TypeError"
		for i := range 1000 {
			name := "call" + strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i)) // no number, which would not count
			if i > 500 && i < 900 {
				name = middle + name
			}
			e.StackTrace = append(e.StackTrace, fmt.Sprintf("at shop.%s (/srv/shop/src/%s.js:%d:7)", name, name, i+1))
		}
		return e
	}
	var g Grouper
	one := g.Fingerprint(stack("a")).All()
	other := g.Fingerprint(stack("b"))
	if !slices.Equal(one, other.All()) {
		t.Error("calls in the middle count")
	}
	shown := other.Describe().Exceptions[0]
	if foreign := slices.IndexFunc(shown.Frames, func(f trace.Frame) bool { return !f.InApp }); len(shown.Frames) != trace.MaxShown || foreign >= 0 {
		t.Errorf("of %d frames that are shown the one at %d counts as foreign", len(shown.Frames), foreign)
	}
}

package main

import (
	"strconv"
	"strings"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
)

// Rules of other products, rewritten from their
// documentation. All get Weir's frames, and its choice
// of own code: more than raw text would give them.

// peer is how one product groups by default.
type peer struct {
	name string
	key  func(e *grouping.Description, sent grouping.Error) string
}

var peers = []peer{
	{"Sentry", sentry}, {"Datadog", datadog}, {"BugSnag", bugsnag}, {"Rollbar", rollbar}, {"Elastic", elastic}, {"type + message", typeAndMessage},
	{"type + 5 words + top 4 own frames", plain(outermostType, plainWords, 4)},
	{"innermost type + top 3 own frames", plain(innermostType, 0, 3)},
}

// keyOf groups as the peer does, which does not learn.
func (p peer) keyOf(g *grouping.Grouper, sent grouping.Error) string {
	sent.Learned = grouping.Learned{}
	about := g.Fingerprint(sent).Describe()
	return p.key(&about, sent)
}

// plainWords is how many words count in the plain rule.
const plainWords = 5

// plain is the rule that anybody would write first: a type, the first
// words of the message without values, and the innermost own frames,
// or the innermost where none is own.
func plain(typeOf func(e *grouping.Description) string, words, most int) func(*grouping.Description, grouping.Error) string {
	return func(e *grouping.Description, _ grouping.Error) string {
		said := strings.Fields(withoutDigits(first(e.Exceptions[len(e.Exceptions)-1].Message)))
		key := typeOf(e) + "\n" + strings.Join(said[:min(words, len(said))], " ") + "\n"
		_, own := frames(e)
		left := most
		for _, x := range e.Exceptions {
			for _, f := range x.Frames {
				if left > 0 && (f.InApp || own == 0) {
					key += f.Module + base(f.File) + "." + f.Function + "\n"
					left--
				}
			}
		}
		return key
	}
}

func outermostType(e *grouping.Description) string { return e.Type }
func innermostType(e *grouping.Description) string { return e.Exceptions[0].Type }

// sentry: types of the chain and own frames, without lines; all frames
// where none is own; the parameterized message without a frame.
func sentry(e *grouping.Description, sent grouping.Error) string {
	own, all := "", ""
	for _, x := range e.Exceptions {
		own, all = own+x.Type+"\n", all+x.Type+"\n"
		for _, f := range x.Frames {
			line := f.Module + "." + withoutDigits(f.Function) + "\n"
			if f.Module == "" {
				line = strings.ToLower(base(f.File)) + "." + f.Function + "\n"
			}
			if all += line; f.InApp {
				own += line
			}
		}
	}
	switch count, owned := frames(e); {
	case count == 0:
		return e.Type + "\n" + withoutDigits(sent.Message)
	case owned == 0:
		return all
	}
	return own
}

// datadog: type, message without what varies, file
// and function of the topmost meaningful frame.
func datadog(e *grouping.Description, sent grouping.Error) string {
	f := top(e.Exceptions[0])
	return e.Type + "\n" + withoutDigits(first(sent.Message)) + "\n" + base(f.File) + "\n" + f.Module + "." + f.Function
}

// bugsnag: class of the innermost exception, file
// and line of its topmost frame in the project.
func bugsnag(e *grouping.Description, _ grouping.Error) string {
	x := e.Exceptions[0]
	f := top(x)
	return x.Type + "\n" + f.Module + base(f.File) + ":" + strconv.Itoa(f.Line)
}

// rollbar: class of the exception, file and method of every frame.
func rollbar(e *grouping.Description, sent grouping.Error) string {
	key := e.Type + "\n"
	for _, x := range e.Exceptions {
		for _, f := range x.Frames {
			key += f.Module + base(f.File) + "." + f.Function + "\n"
		}
	}
	if all, _ := frames(e); all == 0 {
		key += withoutDigits(sent.Message)
	}
	return key
}

// elastic: types of the chain, module or file and
// function of every frame; the message without a frame.
func elastic(e *grouping.Description, sent grouping.Error) string {
	key := ""
	for _, x := range e.Exceptions {
		key += x.Type + "\n"
		for _, f := range x.Frames {
			if f.Module == "" {
				key += base(f.File)
			}
			key += f.Module + "." + f.Function + "\n"
		}
	}
	if all, _ := frames(e); all == 0 {
		key += sent.Message
	}
	return key
}

func typeAndMessage(e *grouping.Description, sent grouping.Error) string {
	return e.Type + "\n" + sent.Message
}

// frames returns how many there are, and how many are of own code.
func frames(e *grouping.Description) (all, own int) {
	for _, x := range e.Exceptions {
		all += len(x.Frames)
		for _, f := range x.Frames {
			if f.InApp {
				own++
			}
		}
	}
	return all, own
}

// top is an exception's innermost own frame, else its innermost.
func top(x trace.Exception) trace.Frame {
	for _, f := range x.Frames {
		if f.InApp {
			return f
		}
	}
	if len(x.Frames) == 0 {
		return trace.Frame{}
	}
	return x.Frames[0]
}

func first(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// withoutDigits replaces every word with a digit by a star.
func withoutDigits(s string) string {
	words := strings.Fields(s)
	for i, word := range words {
		if strings.ContainsAny(word, "0123456789") {
			words[i] = "*"
		}
	}
	return strings.Join(words, " ")
}

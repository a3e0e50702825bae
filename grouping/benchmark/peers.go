package main

import (
	"strconv"
	"strings"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
)

// peer is how one product groups by default, rewritten from its documentation.
// All get Weir's frames, and its choice of own code: more than raw text would
// give them.
type peer struct {
	name    string
	types   types
	message func(e *grouping.Description, sent grouping.Error) string
	alone   bool // the message counts without a frame only
	first   bool // frames of the innermost exception alone count
	own     bool // own frames count, all where none is own
	most    int  // frames that count, the innermost; 0: all
	frame   func(f *trace.Frame) string
}

// types are whose types count.
type types uint8

const (
	outermost types = iota
	innermost
	chain
)

var peers = []peer{
	{name: "Sentry", types: chain, message: withoutValues, alone: true, own: true, frame: func(f *trace.Frame) string {
		if f.Module == "" {
			return strings.ToLower(base(f.File)) + "." + f.Function
		}
		return f.Module + "." + withoutDigits(f.Function)
	}},
	{name: "Datadog", message: firstWithoutValues, first: true, own: true, most: 1, frame: fileAndFunction},
	{name: "BugSnag", types: innermost, first: true, own: true, most: 1, frame: func(f *trace.Frame) string {
		return f.Module + base(f.File) + ":" + strconv.Itoa(f.Line)
	}},
	{name: "Rollbar", message: withoutValues, alone: true, frame: fileAndFunction},
	{name: "Elastic", types: chain, message: asSent, alone: true, frame: func(f *trace.Frame) string {
		if f.Module == "" {
			return base(f.File) + "." + f.Function
		}
		return f.Module + "." + f.Function
	}},
	{name: "type + message", message: asSent},
	plain(4),
	{name: "innermost type + top 3 own frames", types: innermost, own: true, most: 3, frame: fileAndFunction},
}

// plainWords is how many words count in the plain rule.
const plainWords = 5

// plain is the rule that anybody would write first: the type, the first words
// of the message without values, and the innermost own frames.
func plain(most int) peer {
	return peer{name: "type + 5 words + top 4 own frames", own: true, most: most, frame: fileAndFunction,
		message: func(e *grouping.Description, _ grouping.Error) string {
			words := strings.Fields(withoutDigits(first(e.Exceptions[len(e.Exceptions)-1].Message)))
			return strings.Join(words[:min(plainWords, len(words))], " ")
		}}
}

func fileAndFunction(f *trace.Frame) string { return f.Module + base(f.File) + "." + f.Function }

func asSent(_ *grouping.Description, sent grouping.Error) string { return sent.Message }

func withoutValues(_ *grouping.Description, sent grouping.Error) string {
	return withoutDigits(sent.Message)
}

func firstWithoutValues(_ *grouping.Description, sent grouping.Error) string {
	return withoutDigits(first(sent.Message))
}

// keyOf groups as the peer does, which does not learn.
func (p peer) keyOf(g *grouping.Grouper, sent grouping.Error) string {
	sent.Learned = grouping.Learned{}
	e := g.Fingerprint(sent).Describe()
	counted := e.Exceptions
	if p.first {
		counted = counted[:1]
	}
	key, own, frames := "", false, 0
	for _, x := range counted {
		for _, f := range x.Frames {
			own = own || p.own && f.InApp
		}
	}
	for i, x := range counted {
		if p.types == chain || p.types == innermost && i == 0 {
			key += x.Type + "\n"
		}
		for k := range x.Frames {
			if f := &x.Frames[k]; p.frame != nil && (f.InApp || !own) && (p.most == 0 || frames < p.most) {
				key, frames = key+p.frame(f)+"\n", frames+1
			}
		}
	}
	if p.types == outermost {
		key += e.Type + "\n"
	}
	if p.message != nil && (!p.alone || frames == 0) {
		key += p.message(&e, sent)
	}
	return key
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

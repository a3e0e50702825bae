package grouping

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of a description, in bytes.
const (
	maxTitle   = 200
	maxType    = 200
	maxCulprit = 200
)

// Description is what people see of an error.
// It shares no memory with the Grouper.
type Description struct {
	Title      string // type and message, on one line
	Type       string // as sent, else as in the trace
	Culprit    string // the innermost own frame, without numbers that change
	Language   trace.Language
	Exceptions []trace.Exception // the root cause first; each one's innermost call first
}

// Part is one thing that a group's hash was made of.
type Part struct {
	Kind  string // "type", "message", "frame", "group", "rule" or "value"
	Value string
}

// An Explanation is why an error belongs to its group.
type Explanation struct {
	Version  int
	Scope    HashScope
	Hash     Hash
	Language trace.Language
	Parts    []Part // what the deciding hash covers
	Rule     Rule   // by which they were chosen
}

// Rule is how a group was distinguished. Rules are stored,
// so they are never renamed; an unknown one is its own text.
type Rule string

// The rules.
const (
	RuleSite      Rule = "site"
	RuleFunction  Rule = "function"
	RuleRecursion Rule = "recursion"
	RuleMessage   Rule = "message"
	RuleSplit     Rule = "split"
	RuleSame      Rule = "same"
	RuleGroup     Rule = "group"
)

var ruleTexts = map[Rule]string{
	RuleSite:      "Errors with this type, these words of the message and these innermost own frames of the root cause are one group.",
	RuleFunction:  "Errors of this type are mistakes where they are thrown: those from this function are one group.",
	RuleRecursion: "Endless recursion: errors that go through the same functions are one group.",
	RuleSplit: "Somebody split errors like the first of these off from the group below. The whole message and ten own frames count, " +
		"or all own frames of all errors of the chain, whichever it takes to tell them apart.",
	RuleSame:    "A rule of the project says that these errors are one group.",
	RuleGroup:   "A rule of the project says by what such errors are grouped: those that have this in common are one group.",
	RuleMessage: "There is no usable stack trace: errors with this type and this message, values aside, are one group.",
}

// Text explains a rule.
func (r Rule) Text() string { return cmp.Or(ruleTexts[r], string(r)) }

// Describe returns a description of the error.
func (f Fingerprint) Describe() Description {
	g := f.grouper
	s := g.trace.Outermost()
	d := Description{
		Title:    f.title(s),
		Type:     strings.Clone(trace.Clip(trace.FirstLine(s.Type), maxType)),
		Culprit:  f.culprit(),
		Language: g.trace.Language(),
	}
	if rule := g.ruling.decides; rule != nil && rule.kind == SameRule {
		d.Title = trace.Clip(rule.name, maxTitle)
	}
	for _, s := range g.trace.Spans() {
		frames := slices.Clone(g.trace.Frames()[s.First:min(s.End, s.First+trace.MaxShown)])
		for i := range frames {
			frames[i].Library = g.trace.WhyLibrary(s.First + i)
		}
		d.Exceptions = append(d.Exceptions, trace.Exception{Type: s.Type, Message: s.Message, Frames: frames, More: s.End - s.First - len(frames)})
	}
	g.trace.Keep()
	return d
}

func (f Fingerprint) title(s trace.Span) string {
	typ, message := trace.FirstLine(s.Type), trace.FirstLine(s.Message)
	switch {
	case typ != "" && message != "" && message != typ:
		return trace.Clip(typ+": "+message, maxTitle)
	case typ != "" || message != "":
		return trace.Clip(typ+message, maxTitle)
	case f.culprit() != "":
		return f.culprit()
	}
	return "Error"
}

func (f Fingerprint) culprit() string {
	if !f.traced() {
		return ""
	}
	t := &f.grouper.trace
	innermost := t.Site()[0]
	switch t.Language() {
	case trace.JavaScript, trace.Python, trace.Ruby:
		return trace.Clip(trace.Location(&t.Frames()[innermost]), maxCulprit)
	}
	return trace.Clip(strings.TrimSuffix(string(t.Identity(innermost)), ":"), maxCulprit)
}

// Explain returns how the error is grouped.
func (f Fingerprint) Explain() Explanation {
	g, decides := f.grouper, f.Deciding()
	why := Explanation{Version: decides.Version, Scope: decides.Scope, Hash: decides.Hash, Language: g.trace.Language()}
	switch decides.Scope {
	case ScopeRule:
		return g.ruling.explainUsed(g.ruling.explain(why))
	case ScopeMessage:
		return g.ruling.explainUsed(f.explainMessage(why))
	}
	return g.ruling.explainUsed(f.explainSite(why))
}

func (f Fingerprint) explainMessage(why Explanation) Explanation {
	g := f.grouper
	why.Parts = appendPart(why.Parts, "type", g.kind)
	why.Parts = appendPart(why.Parts, "message", g.message.AppendAll(nil))
	why.Rule = RuleMessage
	return why
}

func (f Fingerprint) explainSite(why Explanation) Explanation {
	g := f.grouper
	if len(g.cycle) > 0 {
		for _, name := range g.cycle {
			why.Parts = appendPart(why.Parts, "frame", name)
		}
		why.Rule = RuleRecursion
		return why
	}
	why.Parts = appendPart(why.Parts, "type", g.kind)
	level := Levels[deciding]
	if why.Rule = RuleFunction; !g.fault {
		why.Rule = RuleSite
		why.Parts = appendPart(why.Parts, "message", g.message.AppendWords(nil, level.Words))
	}
	for _, i := range g.deciders(level) {
		why.Parts = appendPart(why.Parts, "frame", g.trace.Identity(i))
	}
	return why
}

func appendPart(parts []Part, kind string, value []byte) []Part {
	if text := strings.TrimSpace(string(value)); text != "" {
		return append(parts, Part{kind, text})
	}
	return parts
}
